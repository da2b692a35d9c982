package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Each row is what stands on the key, how the lock is asked for, and what comes
// of it.
func TestAcquire(t *testing.T) {
	now := time.Now() // and stays: how long the test takes decides about no lease
	past, soon := ddb.Number(ddb.Seconds(now.Add(-time.Hour))), ddb.Number(ddb.Seconds(now.Add(time.Hour)))
	item := func(attrs ddb.Item) ddb.Item {
		attrs["id"], attrs["count"] = ddb.Text("beans"), ddb.Integer(1)
		return attrs
	}
	held := func(until time.Time) ddb.Item {
		return item(ddb.Item{"lockedBy": ddb.Text(stored.NewID("other")), "lockTime": ddb.Number(ddb.Seconds(until)), "lockLease": ddb.Number("30"), "lockHeld": ddb.Integer(7), "lockToken": ddb.Integer(8)})
	}
	for name, row := range map[string]struct {
		stored   ddb.Item // nil: no item
		request  Request
		want     error
		requests int
		stolen   int64 // the token that a takeover leaves; 0: none is asked for
		stub     bool
	}{
		"free":                     {stored: item(ddb.Item{}), requests: 1},
		"no item":                  {want: repo.ErrNotFound, requests: 2}, // it is read once, until the endpoint has shown an image
		"no item, stub":            {request: Request{Stub: true}, requests: 2, stub: true},
		"no item, row":             {request: Request{Row: true}, requests: 1},
		"a stub is no item":        {stored: ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True()}, want: repo.ErrNotFound, requests: 1},
		"a stub, to lock a key":    {stored: ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True()}, request: Request{Stub: true}, requests: 1, stub: true},
		"held":                     {stored: held(now.Add(time.Hour)), request: Request{Try: true}, want: repo.ErrLocked, requests: 1},
		"over, but clocks differ":  {stored: held(now.Add(-time.Second / 2)), request: Request{Try: true}, want: repo.ErrLocked, requests: 1},
		"over":                     {stored: held(now.Add(-time.Minute)), requests: 1, stolen: 7},
		"by hand":                  {stored: item(ddb.Item{"lockedBy": ddb.Text("joe"), "lockTime": soon}), request: Request{Try: true}, want: repo.ErrLocked, requests: 1},
		"by hand, a time alone":    {stored: item(ddb.Item{"lockTime": soon}), request: Request{Try: true}, want: repo.ErrLocked, requests: 1},
		"by hand, over":            {stored: item(ddb.Item{"lockedBy": ddb.Text("joe"), "lockTime": past}), requests: 1},
		"a foreign lockToken":      {stored: item(ddb.Item{"lockToken": ddb.Text("mine")}), want: repo.ErrSchema, requests: 1},
		"a foreign lockedBy":       {stored: item(ddb.Item{"lockedBy": ddb.Integer(1), "lockTime": past}), want: repo.ErrSchema, requests: 1},
		"a name that says no time": {stored: item(ddb.Item{"lockedBy": ddb.Text("joe")}), want: repo.ErrSchema, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, Config{})
			p.Clock = func() time.Time { return now }
			p.delete(t)
			if row.stored != nil {
				p.put(t, row.stored)
			}
			before := p.Count.Total()
			h, image, err := p.Acquire(t.Context(), key, raw, row.request)
			if !errors.Is(err, row.want) {
				t.Fatalf("error %v, want %v", err, row.want)
			}
			rig.Equal(t, p.Count.Total()-before, row.requests, "requests")
			if err != nil {
				if stored := p.Item(t, raw); !ddb.EqualItems(stored, row.stored) {
					t.Errorf("it has changed %v to %v", row.stored, stored)
				}
				return
			}
			l, stored := p.record(t)
			if l.By != h.ID() || l.Held != h.Token() || !ddb.EqualItems(image, stored) {
				t.Errorf("the handle has %s %d and %v, stored is %v", h.ID(), h.Token(), image, stored)
			}
			if row.stolen != 0 && l.Stolen != row.stolen || l.Stub != row.stub {
				t.Errorf("stored is %+v", l)
			}
		})
	}
}

// Whatever becomes of the first request, the caller gets the lock, and under one
// hold only.
func TestAcquireThroughFaults(t *testing.T) {
	for _, request := range []Request{{}, {Stub: true}, {Row: true}} {
		for _, fair := range []bool{false, true} {
			for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Resend, fault.Error500, fault.Error500After, fault.Throttle, fault.EmptyAfter} {
				p := open(t, Config{Fair: fair})
				p.Nth("UpdateItem", 0, kind)
				h, _, err := p.Acquire(t.Context(), key, raw, request)
				if err != nil {
					t.Fatalf("%+v, fair %v, %v: %v", request, fair, kind, err)
				}
				if l, _ := p.record(t); l.By != h.ID() || l.Held != h.Token() {
					t.Errorf("%+v, fair %v, %v: the handle has %s %d, stored is %+v", request, fair, kind, h.ID(), h.Token(), l)
				}
			}
		}
	}
}

// Who gives up while its request is under way leaves nothing behind.
func TestAcquireGivenUpLeavesNothing(t *testing.T) {
	for name, request := range map[string]Request{"item": {}, "stub": {Stub: true}, "row": {Row: true}} {
		for _, fair := range []bool{false, true} {
			p := open(t, Config{Fair: fair})
			nth := 1
			if request.Stub {
				p.delete(t)
				nth = 2 // the first finds out that there is nothing
			}
			ctx := p.endsAt(t, nth, fault.LoseResponse)
			_, _, err := p.Acquire(ctx, key, raw, request)
			rig.Is(t, err, context.Canceled)
			if l, item := p.record(t); l.Busy() || request.Stub && item != nil || len(p.Core.ParseQueue(item)) > 0 {
				t.Errorf("%s, fair %v: left behind: %v", name, fair, item)
			}
		}
	}
}

// An orphan that is on the item is the lock that was asked for; one that is not
// is in nobody's way.
func TestAcquireTakesItsOrphan(t *testing.T) {
	p := open(t, Config{})
	h := p.take(t)
	orphan := &Orphan{id: h.ID(), sent: time.Now(), locker: p.Locker, key: p.Core.Pack(raw)}
	got, _, err := p.Acquire(t.Context(), key, raw, Request{Try: true, Orphan: orphan})
	rig.Is(t, err)
	if err == nil && (got.ID() != h.ID() || got.Token() != h.Token()) {
		t.Errorf("another lock: %s %d", got.ID(), got.Token())
	}
	orphan.Release()
	if l, _ := p.record(t); l.Busy() {
		t.Errorf("still there: %+v", l)
	}
	rig.Must(p.take(t).End(t.Context(), End{}))(t)
}

// A watcher without trusted clocks takes over what stood unchanged for its lease
// on the own clock, not before, and not what was extended meanwhile.
func TestTakeoverWithoutClocks(t *testing.T) {
	for _, extended := range []bool{false, true} {
		p := open(t, Config{Clockless: true, Lease: time.Minute})
		dead := p.take(t)
		w := p.other(t)
		w.Clockless, w.Lease = true, time.Minute
		looks := 0
		h, _, err := w.Acquire(t.Context(), key, raw, Request{OnWait: func(l stored.Record) {
			looks++
			if looks > 3 {
				w.ahead += time.Minute
			}
			if extended && looks == 4 {
				p.ahead += time.Second
				rig.Is(t, dead.Extend(t.Context()))
			}
		}})
		rig.Is(t, err)
		if want := map[bool]int{false: 4, true: 5}[extended]; looks != want {
			t.Errorf("extended %v: taken over after %d looks, want %d", extended, looks, want)
		}
		if l, _ := p.record(t); err == nil && (l.By != h.ID() || l.Stolen != dead.Token()) {
			t.Errorf("stored is %+v", l)
		}
	}
}

// A context that ends right after a try whose answer was lost is why there is no other:
// the error says so.
func TestAContextThatEndsBehindATry(t *testing.T) {
	p := open(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	p.Nth("UpdateItem", 0, fault.DropRequest)
	classify := p.Core.Classify
	p.Core.Classify = func(err error) error { cancel(); return classify(err) }
	_, _, err := p.Acquire(ctx, key, raw, Request{})
	rig.Is(t, err, context.Canceled)
}
