package lock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// queuer is a process that waits in the queue of the item.
type queuer struct {
	*process
	got chan *Lock
	err chan error
}

// enqueue starts an acquisition, and returns when it is known to stand in the queue.
func (p *process) enqueue(ctx context.Context, t *testing.T, how Request) *queuer {
	t.Helper()
	q := &queuer{p, make(chan *Lock, 1), make(chan error, 1)}
	waits := make(chan struct{}, 1)
	how.OnWait = func(stored.Record) {
		select {
		case waits <- struct{}{}:
		default:
		}
	}
	go func() {
		h, _, err := p.Acquire(ctx, key, raw, how)
		q.err <- err
		q.got <- h
	}()
	select {
	case <-waits:
	case err := <-q.err:
		t.Fatalf("it does not wait: %v", err)
	}
	return q
}

// The lock goes to those who wait in the order of their coming, and is free in
// between at no time, whatever befalls the request that hands it on.
func TestQueueInOrder(t *testing.T) {
	for _, kind := range []fault.Kind{fault.None, fault.LoseResponse, fault.DropRequest} {
		for as := range map[Ending]bool{Release: true, Commit: true} {
			t.Run(fmt.Sprintf("%s/%v", endings[as], kind), func(t *testing.T) {
				t.Parallel()
				p := open(t, Config{Fair: true})
				h := p.take(t)
				first := p.other(t).enqueue(t.Context(), t, Request{})
				second := p.other(t).enqueue(t.Context(), t, Request{})
				holder := &queuer{process: p}
				for i, next := range []*queuer{first, second} {
					holder.Nth("UpdateItem", 0, kind)
					rig.Must(h.End(t.Context(), endAs(as)))(t)
					holder.Faults(nil)
					token := h.Token()
					if l, _ := p.record(t); !l.Busy() || l.Held != token+1 {
						t.Errorf("after end %d: %+v", i, l)
					}
					rig.Is(t, <-next.err)
					if h = <-next.got; h.Token() != token+1 {
						t.Errorf("token %d after %d", h.Token(), token)
					}
					holder = next
				}
				if len(second.got) > 0 || first.process == second.process {
					t.Error("two have the lock")
				}
				rig.Must(h.End(t.Context(), End{}))(t)
				if l, item := p.record(t); l.Busy() || len(p.Core.ParseQueue(item)) > 0 {
					t.Errorf("left: %v", item)
				}
			})
		}
	}
}

// Who leaves the queue takes its entry along, also if the lock was handed to it in
// the same moment.
func TestQueueLeft(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	ctx, leave := context.WithCancel(t.Context())
	q := p.other(t).enqueue(ctx, t, Request{})
	leave()
	rig.Is(t, <-q.err, context.Canceled, repo.ErrLocked)
	if _, item := p.record(t); len(p.Core.ParseQueue(item).Without(stored.EntryOf(h.ID()))) > 0 {
		t.Errorf("left: %v", item)
	}
	rig.Must(h.End(t.Context(), End{}))(t)
	if l, item := p.record(t); l.Busy() {
		t.Errorf("left: %v", item)
	}
}

// The queue passes over who is dead: a holder whose lease is over, and those before
// who do not take over.
func TestQueueTakesOverFromTheDead(t *testing.T) {
	p := open(t, Config{Fair: true})
	dead := p.take(t)
	q := p.other(t)
	q.ahead = 2 * time.Hour
	h := q.take(t)
	if l, _ := p.record(t); l.By != h.ID() || l.Stolen != dead.Token() {
		t.Errorf("stored is %+v", l)
	}
	_, err := dead.End(t.Context(), endAs(Commit))
	rig.Is(t, err, repo.ErrLockLost)
}

// A commit that finds somebody new in the queue hands the lock to it: the request
// that would free it is refused.
func TestEndMeetsANewWaiter(t *testing.T) {
	for as := range map[Ending]bool{Release: true, Commit: true} {
		p := open(t, Config{Fair: true})
		h := p.take(t) // it has seen nobody
		q := p.other(t).enqueue(t.Context(), t, Request{})
		p.Count.Reset()
		rig.Must(h.End(t.Context(), endAs(as)))(t)
		if n := p.Count.Total(); n != 2 {
			t.Errorf("%s: %d requests, want the refused one and the one that hands over", endings[as], n)
		}
		rig.Is(t, <-q.err)
		rig.Must((<-q.got).End(t.Context(), End{}))(t)
	}
}

// The first who waits has left since the holder has seen it: nobody gets the lock
// that nobody will use.
func TestEndMeetsOneWhoHasLeft(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	ctx, leave := context.WithCancel(t.Context())
	q := p.other(t).enqueue(ctx, t, Request{})
	rig.Is(t, h.Extend(t.Context()))
	if !h.Waited() {
		t.Fatal("it has not seen who waits")
	}
	leave()
	rig.Is(t, <-q.err, context.Canceled)
	rig.Must(h.End(t.Context(), endAs(Commit)))(t)
	if l, item := p.record(t); l.Busy() || count(item) != 2 {
		t.Errorf("left: %v", item)
	}
}

// The release of a stub finds that who waited has left, and deletes the stub. Where
// the answer to that is lost, the delete is repeated until it is decided, and never
// meets the stub that somebody else has made meanwhile.
func TestEndOfAStubMeetsOneWhoHasLeft(t *testing.T) {
	for _, kind := range []fault.Kind{fault.None, fault.DropRequest, fault.LoseResponse, fault.Error500After} {
		for _, follows := range []bool{false, true} {
			if follows && (kind == fault.None || kind == fault.DropRequest) {
				continue // there is no second delete, or the first has left no room
			}
			p := open(t, Config{Fair: true})
			p.delete(t)
			h, _, err := p.Acquire(t.Context(), key, raw, Request{Stub: true})
			rig.Is(t, err)
			ctx, leave := context.WithCancel(t.Context())
			q := p.other(t).enqueue(ctx, t, Request{Stub: true})
			rig.Is(t, h.Extend(t.Context())) // it sees who waits
			leave()
			rig.Is(t, <-q.err, context.Canceled)
			var next *Lock
			deletes := 0
			p.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op != "DeleteItem" {
					return fault.None
				}
				switch deletes++; {
				case deletes == 1:
					return kind
				case follows && next == nil:
					o := p.other(t)
					o.ahead = time.Minute // so much later: a new life of the item begins with the time
					next, _, err = o.Acquire(t.Context(), key, raw, Request{Stub: true})
					rig.Is(t, err)
				}
				return fault.None
			})
			rig.Must(h.End(t.Context(), End{}))(t)
			if want := map[bool]int{true: 1, false: 2}[kind == fault.None]; deletes != want {
				t.Errorf("%v: %d deletes, want %d", kind, deletes, want)
			}
			_, item := p.record(t)
			switch {
			case !follows && item != nil:
				t.Errorf("%v: left: %v", kind, item)
			case follows:
				_, err := next.End(t.Context(), End{})
				rig.Is(t, err)
			}
		}
	}
}

// Who was passed over comes back under a name of its own: a late copy of its first
// enqueue must not pass for the second.
func TestQueuePassedOver(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	q := p.other(t).enqueue(t.Context(), t, Request{})
	waiting := func() stored.Queue {
		_, item := p.record(t)
		return p.Core.ParseQueue(item).Without(stored.EntryOf(h.ID()))
	}
	first := waiting()[0].ID
	w := p.Core.NewWrite()
	w.Vacate(waiting()[0].Place)
	rig.Must(rig.Client().UpdateItem(t.Context(), rig.Must(w.Update(raw))(t)))(t)
	rig.Await(t, "it stands in the queue again", func() bool { return len(waiting()) == 1 })
	if again := waiting()[0].ID; again == first {
		t.Errorf("it came back as %s", again)
	}
	rig.Must(h.End(t.Context(), End{}))(t)
	rig.Is(t, <-q.err)
	rig.Must((<-q.got).End(t.Context(), End{}))(t)
}

// An enqueue whose first answer was lost, and that is then refused, may have
// landed: its caller goes away and takes the entry along.
func TestQueueLeftAfterALostAnswer(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	o := p.other(t)
	ctx, leave := context.WithCancel(t.Context())
	sent := 0
	o.Faults(func(string, int, []byte) fault.Kind {
		switch sent++; sent {
		case 1:
			return fault.LoseResponse
		case 2:
			leave()
			return fault.Refuse
		}
		return fault.None
	})
	_, _, err := o.Acquire(ctx, key, raw, Request{})
	rig.Is(t, err, context.Canceled)
	if _, item := p.record(t); len(p.Core.ParseQueue(item).Without(stored.EntryOf(h.ID()))) > 0 {
		t.Errorf("left: %v", item)
	}
	rig.Must(h.End(t.Context(), End{}))(t)
}

// No queue forms behind a lock by hand, or one that never ends: who is fair waits
// there as everybody does.
func TestNoQueueBehindALockByHand(t *testing.T) {
	p := open(t, Config{Fair: true})
	item := p.Item(t, raw)
	item["lockedBy"], item["lockTime"] = text("joe"), number(time.Now().Add(time.Hour))
	p.put(t, item)
	q := p.enqueue(t.Context(), t, Request{})
	if _, item := p.record(t); len(p.Core.ParseQueue(item)) > 0 {
		t.Errorf("it stands in a queue: %v", item)
	}
	delete(item, "lockedBy")
	delete(item, "lockTime")
	p.put(t, item)
	rig.Is(t, <-q.err)
	rig.Must((<-q.got).End(t.Context(), End{}))(t)
}
