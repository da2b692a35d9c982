package lock

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
)

// A late copy of the request that took a lock takes it again, once it is free: under the
// same id, and a token of its own. What the holder sends under the token that it was given
// does not touch that hold, nor the item.
func TestNothingIsSentUnderAnotherToken(t *testing.T) {
	all := map[string]func(*testing.T, *Lock) error{
		"renewal": func(t *testing.T, h *Lock) error { return h.Extend(t.Context()) },
	}
	for as, name := range endings {
		all[name] = func(t *testing.T, h *Lock) error {
			_, err := h.End(t.Context(), endAs(as))
			return err
		}
	}
	for name, request := range all {
		for _, fair := range []bool{false, true} {
			t.Run(map[bool]string{true: "fair ", false: ""}[fair]+name, func(t *testing.T) {
				p := open(t, Config{Fair: fair})
				h := p.take(t)
				_, copied := p.record(t)
				copied[p.Core.Attr.LockHeld] = ddb.Integer(h.Token() + 1)
				copied[p.Core.Attr.LockToken] = ddb.Integer(h.Token() + 2)
				p.put(t, copied)
				err := request(t, h)
				if _, now := p.record(t); !ddb.EqualItems(copied, now) {
					t.Errorf("the hold of a copy was changed: %v\nfrom %v\nto   %v", err, copied, now)
				}
			})
		}
	}
}

// Tokens grow from hold to hold, also where the next taker's clock is behind.
func TestTokensGrowAgainstTheClock(t *testing.T) {
	p := open(t, Config{})
	p.ahead = time.Hour
	before := int64(0)
	for range 3 {
		h := p.take(t)
		if h.Token() <= before {
			t.Errorf("token %d after %d", h.Token(), before)
		}
		before = h.Token()
		_, err := h.End(t.Context(), End{})
		rig.Is(t, err)
		p.ahead -= time.Hour
	}
}

// A write that demands an item as it was read minds a lock that was taken by hand since,
// which leaves no token and no id.
func TestAsReadMindsALockByHand(t *testing.T) {
	p := open(t, Config{})
	image := p.Item(t, raw)
	held := ddb.Copy(image)
	held[p.Core.Attr.LockedBy], held[p.Core.Attr.LockTime] = ddb.Text("hand"), ddb.Integer(time.Now().Add(time.Hour).Unix())
	p.put(t, held)
	w := p.Core.NewWrite()
	w.Set("count", ddb.Integer(2))
	lockless.IfAsRead(w, image)
	in, err := w.Update(raw)
	rig.Is(t, err)
	if res := p.Core.Update(t.Context(), in, ddb.Options{}); res.Outcome != ddb.Condition || !ddb.EqualItems(held, p.Item(t, raw)) {
		t.Errorf("outcome %v, %v: the item has become %v", res.Outcome, res.Err, p.Item(t, raw))
	}
}

// Who waits in the queue takes over what it has watched, from the place where it stands.
func TestATakeoverIsOfWhatWasWatched(t *testing.T) {
	queue := func(entries ...string) types.AttributeValue {
		list := &types.AttributeValueMemberL{}
		for _, e := range entries {
			list.Value = append(list.Value, ddb.Bytes([]byte(e)))
		}
		return list
	}
	mine, other := stored.NewID("waiter"), stored.EntryOf(stored.NewID("other"))
	entry := stored.EntryOf(mine)
	for name, c := range map[string]struct {
		queue   types.AttributeValue
		renewed bool
		refused bool
	}{
		"as it was watched":            {queue: queue(entry)},
		"renewed since":                {queue: queue(entry), renewed: true, refused: true},
		"passed over since":            {queue: queue(other), refused: true},
		"passed over, behind one more": {queue: queue(other, entry), refused: true},
	} {
		p := open(t, Config{Fair: true})
		p.take(t)
		_, watched := p.record(t)
		watched[p.Core.Attr.LockQueue] = queue(entry)
		found := ddb.Copy(watched)
		found[p.Core.Attr.LockQueue] = c.queue
		if c.renewed {
			found[p.Core.Attr.LockTime] = ddb.Integer(time.Now().Add(2 * time.Hour).Unix())
		}
		p.put(t, found)
		in, err := p.Core.TakeOver(raw, protocol.Acquire{ID: mine, Now: time.Now(), Until: time.Now().Add(time.Hour), Lease: time.Hour, Watched: watched}, stored.Entry{ID: entry})
		rig.Is(t, err)
		if res := p.Core.Update(t.Context(), in, ddb.Options{}); (res.Outcome == ddb.Condition) != c.refused {
			t.Errorf("%s: outcome %v, %v", name, res.Outcome, res.Err)
		}
	}
}

// The deadline of a lock counts from when its request was sent, however late the answer.
func TestTheDeadlineCountsFromTheRequest(t *testing.T) {
	p := open(t, Config{})
	p.take(t)
	_, image := p.record(t)
	a := &acquiring{locker: p.Locker, Waiter: Waiter{Core: p.Core, Key: key, Raw: raw, Settings: Settings{Clock: p.Clock}}}
	h, err := a.hold(t.Context(), image, time.Now().Add(-time.Minute))
	rig.Is(t, err)
	if left := h.Left(); left > p.Lease-time.Minute {
		t.Errorf("%v are left of %v, and the request was sent a minute ago", left, p.Lease)
	}
}
