package lock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Entries are so short that two of them can be the same. Nobody waits in a place, or has a
// lock, that may be another's.

// beforeEnqueue runs before the first enqueue of a process reaches the item, to which kind
// happens then, with the entry that it brings.
func (p *process) beforeEnqueue(t *testing.T, kind fault.Kind, run func(entry string)) {
	done := false
	p.Faults(func(_ string, _ int, body []byte) fault.Kind {
		if done || !bytes.Contains(body, []byte("list_append")) {
			return fault.None
		}
		done = true
		var in struct {
			ExpressionAttributeValues map[string]struct{ B []byte }
		}
		rig.Is(t, json.Unmarshal(body, &in))
		run(string(in.ExpressionAttributeValues[":mine"].B))
		return kind
	})
}

// change changes the item as others may.
func (p *process) change(t *testing.T, set func(*protocol.Write)) {
	t.Helper()
	w := p.Core.NewWrite()
	set(w)
	rig.Must(rig.Client().UpdateItem(t.Context(), rig.Must(w.Update(raw))(t)))(t)
}

func queueOf(entries ...string) types.AttributeValue {
	l := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, e := range entries {
		l.Value = append(l.Value, &types.AttributeValueMemberB{Value: []byte(e)})
	}
	return l
}

// Somebody stands in the queue, or was handed the lock, under the entry that an enqueue
// brings, whether or not an earlier attempt of it had no answer: its caller comes again
// under another.
func TestQueueEntryOfAnother(t *testing.T) {
	for _, kind := range []fault.Kind{fault.None, fault.LoseResponse, fault.DropRequest} {
		for _, handed := range []bool{false, true} {
			p := open(t, Config{Fair: true})
			h := p.take(t)
			o := p.other(t)
			var other string
			o.beforeEnqueue(t, kind, func(entry string) {
				other = entry
				p.change(t, func(w *protocol.Write) {
					if handed {
						w.Set("lockedBy", ddb.Text(stored.NextID(entry)))
						w.Set("lockQueue", queueOf())
						return
					}
					w.Set("lockQueue", queueOf(stored.EntryOf(h.ID()), entry))
				})
			})
			q := o.enqueue(t.Context(), t, Request{})
			_, item := p.record(t)
			for _, e := range p.Core.ParseQueue(item) {
				if e.ID == other {
					t.Errorf("%v, handed over %v: it stands there: %v", kind, handed, item)
				}
			}
			if len(q.got) > 0 {
				t.Errorf("%v, handed over %v: it has the lock of another", kind, handed)
			}
			if handed {
				p.change(t, func(w *protocol.Write) { w.Set("lockedBy", ddb.Text(h.ID())) })
			}
			rig.Must(h.End(t.Context(), End{}))(t)
			rig.Is(t, <-q.err)
			rig.Must((<-q.got).End(t.Context(), End{}))(t)
		}
	}
}

// Who was taken out of the queue while it stood still does not trust an entry with the same
// bytes: only what cannot have been taken out, or stands beside the same others, is its own.
func TestQueueEntryAfterATakeover(t *testing.T) {
	p := open(t, Config{Fair: true})
	long, soon := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	image := func(by string, stolen int64, entries ...string) ddb.Item {
		return ddb.Item{"id": ddb.Text("beans"), "lockedBy": ddb.Text(by), "lockTime": ddb.Integer(soon.Unix()), "lockLease": ddb.Integer(1),
			"lockHeld": ddb.Integer(8), "lockToken": ddb.Integer(9), "lockStolen": ddb.Integer(stolen), "lockQueue": queueOf(entries...)}
	}
	behind := []string{"head", "mine", "next"}
	for name, c := range map[string]struct {
		before []string // whom the last image showed; nil: there was none
		sure   time.Time
		now    ddb.Item
		want   bool
	}{
		"it was never shown":                   {nil, soon, image(stored.NextID("mine"), 3), false},
		"nobody was taken out":                 {[]string{"head", "mine"}, long, image(stored.NextID("mine"), 3), true},
		"it was in time":                       {[]string{"head", "mine"}, soon, image(stored.NextID("mine"), 4), true},
		"it was late, and alone":               {[]string{"head", "mine"}, long, image(stored.NextID("mine"), 4), false},
		"late, and waits alone":                {[]string{"head", "mine"}, long, image(stored.NextID("else"), 4, "mine"), false},
		"late, and another is still behind":    {behind, long, image(stored.NextID("mine"), 4, "next"), true},
		"late, and the one behind is ahead":    {behind, long, image(stored.NextID("next"), 4, "mine"), false},
		"late, and the one ahead has the lock": {[]string{"dead", "head", "mine"}, long, image(stored.NextID("head"), 4, "mine"), true},
		"late, and others have come":           {[]string{"head", "mine"}, long, image(stored.NextID("mine"), 4, "else"), false},
	} {
		q := &queued{acquiring: &acquiring{locker: p.Locker, Waiter: Waiter{Core: p.Core, Settings: Settings{Clock: time.Now}}}, entry: "mine", order: c.before, lastStolen: 3, sure: c.sure}
		l, err := p.Core.ParseRecord(c.now)
		rig.Is(t, err)
		rig.Equal(t, q.certain(c.now, l), c.want, "%s: certain", name)
		if _, ours := q.mine(c.now, l); ours != (c.want && l.By == stored.NextID("mine")) {
			t.Errorf("%s: ours %v", name, ours)
		}
	}
}

// A place that somebody has left stays where it is until the hold ends: nobody else's place
// moves meanwhile, and the holder's next request takes it along.
func TestQueuePlaceThatWasLeft(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	ctx, leave := context.WithCancel(t.Context())
	first := p.other(t).enqueue(ctx, t, Request{})
	second := p.other(t).enqueue(t.Context(), t, Request{})
	rig.Is(t, h.Extend(t.Context())) // sees who waits
	leave()
	rig.Is(t, <-first.err, context.Canceled, repo.ErrLocked)
	_, item := p.record(t)
	if list, _ := item["lockQueue"].(*types.AttributeValueMemberL); len(list.Value) != 3 || len(p.Core.ParseQueue(item)) != 2 || p.Core.ParseQueue(item)[1].Place != 2 {
		t.Errorf("after one has left: %v", item["lockQueue"])
	}
	served := stored.NextID(p.Core.ParseQueue(item)[1].ID)
	rig.Must(h.End(t.Context(), End{}))(t)
	if l, _ := p.record(t); l.By != served {
		t.Errorf("it was handed to %s, not to %s", l.By, served)
	}
	rig.Is(t, <-second.err)
	if _, item = p.record(t); !ddb.Equal(item["lockQueue"], queueOf()) {
		t.Errorf("after the hand-over: %v", item["lockQueue"])
	}
	rig.Must((<-second.got).End(t.Context(), End{}))(t)
	if _, item = p.record(t); item["lockQueue"] != nil {
		t.Errorf("after the last: %v", item["lockQueue"])
	}
}

// A takeover takes those before it out of the queue only where lockStolen shows that it has:
// nobody would ask itself whether it was passed over, had a free lock been taken.
func TestQueueTakeoverShows(t *testing.T) {
	p := open(t, Config{Fair: true})
	own := stored.Entry{ID: "mine", Place: 2}
	for what, c := range map[string]struct {
		change func(ddb.Item)
		takes  []int
	}{
		"a dead holder":                       {func(ddb.Item) {}, []int{2, 1, 0}},
		"a dead holder that stands behind":    {func(i ddb.Item) { i["lockQueue"] = queueOf("head", "body", "mine", "next") }, []int{3, 2, 1, 0}},
		"a free lock":                         {func(i ddb.Item) { delete(i, "lockedBy"); delete(i, "lockTime"); delete(i, "lockHeld") }, []int{2}},
		"one by hand that keeps an old token": {func(i ddb.Item) { i["lockStolen"] = i["lockHeld"] }, []int{2}},
	} {
		image := ddb.Item{"id": ddb.Text("beans"), "lockedBy": ddb.Text(stored.NextID("next")), "lockTime": ddb.Integer(1), "lockLease": ddb.Integer(1),
			"lockHeld": ddb.Integer(8), "lockToken": ddb.Integer(9), "lockStolen": ddb.Integer(3), "lockQueue": queueOf("head", "body", "mine")}
		c.change(image)
		in := rig.Must(p.Core.TakeOver(raw, protocol.Acquire{ID: stored.NewID("me"), Lease: time.Hour, Watched: image}, own))(t)
		_, remove, _ := strings.Cut(*in.UpdateExpression, "REMOVE ")
		var want []string
		for _, place := range c.takes {
			want = append(want, fmt.Sprintf("[%d]", place))
		}
		if got := regexp.MustCompile(`\[\d+\]`).FindAllString(remove, -1); !slices.Equal(got, want) {
			t.Errorf("%s: takes %v out, want %v", what, got, want)
		}
	}
}

// A lock that goes on within the process leaves its place in the queue, and those behind
// it move up: the next one hands over to them with its first request.
func TestQueueMovesUpWithinTheProcess(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	q := p.other(t).enqueue(t.Context(), t, Request{})
	rig.Is(t, h.Extend(t.Context())) // sees who waits
	next := rig.Must(h.End(t.Context(), End{As: Commit, Change: setCount(2), KeepLocal: true}))(t)
	_, item := p.record(t)
	waiting := p.Core.ParseQueue(item)
	if len(waiting) != 1 || waiting[0].Place != 0 {
		t.Fatalf("the queue is %v", item["lockQueue"])
	}
	sent := 0
	p.Faults(func(string, int, []byte) fault.Kind { sent++; return fault.None })
	rig.Must(next.End(t.Context(), End{}))(t)
	if l, _ := p.record(t); l.By != stored.NextID(waiting[0].ID) || sent != 1 {
		t.Errorf("handed to %s by %d requests", l.By, sent)
	}
	rig.Is(t, <-q.err)
	rig.Must((<-q.got).End(t.Context(), End{}))(t)
}

// However many have died before it, one who takes over can send its request.
func TestQueueTakeoverBehindManyDead(t *testing.T) {
	p := open(t, Config{Fair: true})
	entries := make([]string, 2000)
	for i := range entries {
		entries[i] = fmt.Sprintf("%04d", i)
	}
	dead := p.Item(t, raw)
	dead["lockedBy"], dead["lockTime"], dead["lockLease"] = ddb.Text(stored.NextID("dead")), ddb.Integer(1), ddb.Integer(1)
	dead["lockHeld"], dead["lockToken"], dead["lockStolen"], dead["lockQueue"] = ddb.Integer(8), ddb.Integer(9), ddb.Integer(3), queueOf(entries...)
	p.put(t, dead)
	own := stored.Entry{ID: entries[1999], Place: 1999}
	in := rig.Must(p.Core.TakeOver(raw, protocol.Acquire{ID: stored.NewID("me"), Now: time.Now(), Until: time.Now().Add(time.Hour), Lease: time.Hour, Watched: dead}, own))(t)
	rig.Must(rig.Client().UpdateItem(t.Context(), in))(t)
	if l, item := p.record(t); l.Stolen != 8 || len(p.Core.ParseQueue(item)) >= 1999 {
		t.Errorf("%+v, %d wait", l, len(p.Core.ParseQueue(item)))
	}
}

// Who finds a free lock takes it, also where others stand in the queue of a lock that was
// broken: its own place is behind theirs, and goes with its hold, however that ends.
func TestQueueHolderBehindOthers(t *testing.T) {
	for what, end := range map[string]func(p *process, h *Lock) error{
		"release":       func(_ *process, h *Lock) error { _, err := h.End(t.Context(), End{}); return err },
		"break":         func(p *process, h *Lock) error { return p.Break(t.Context(), key, raw, h.Token()) },
		"release by id": func(p *process, h *Lock) error { return p.ReleaseByID(t.Context(), key, raw, h.ID(), false, false) },
	} {
		p := open(t, Config{Fair: true})
		item := p.Item(t, raw)
		item["lockQueue"] = queueOf("head", "next")
		p.put(t, item)
		h := p.take(t)
		rig.Is(t, end(p, h))
		want := []stored.Entry{{ID: "head", Place: 0}, {ID: "next", Place: 1}}
		if what == "release" {
			want = []stored.Entry{{ID: "next", Place: 0}}
		}
		l, item := p.record(t)
		if got := p.Core.ParseQueue(item); !slices.Equal(got, want) {
			t.Errorf("%s: left %v", what, item["lockQueue"])
		}
		if handed := l.By == stored.NextID("head"); handed != (what == "release") || l.Busy() != handed {
			t.Errorf("%s: %+v", what, l)
		}
	}
}
