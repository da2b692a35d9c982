package lock

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
)

// knows lets the process know how long trips and turns take.
func (p *process) knows() *process {
	p.HoldTimes.Change(p.Core.KeyText(raw), func(pace.Learned) (pace.Learned, bool) {
		return pace.Learned{Trip: time.Millisecond, Turn: time.Millisecond}, true
	})
	return p
}

// Whose enqueue has no answer sees beside it that it has the lock.
func TestAStalledEnqueueHasTheLock(t *testing.T) {
	p := open(t, Config{Fair: true}).knows()
	p.Nth("UpdateItem", 0, fault.HoldResponse)
	h := p.take(t)
	if l, _ := p.record(t); l.By != h.ID() || l.Held != h.Token() {
		t.Errorf("%s has token %d, the item shows %+v", h.ID(), h.Token(), l)
	}
	rig.Must(h.End(t.Context(), End{}))(t)
}

// Whose enqueue has no answer, and which stands in the queue, comes again under another
// entry: nobody stands there twice, nor has a place that may be another's.
func TestAStalledEnqueueComesAgain(t *testing.T) {
	for _, alike := range []bool{false, true} {
		p := open(t, Config{Fair: true})
		h := p.take(t)
		o := p.other(t).knows()
		var first string
		o.beforeEnqueue(t, fault.HoldResponse, func(entry string) {
			if first = entry; alike {
				p.change(t, func(w *protocol.Write) { w.Set("lockQueue", queueOf(stored.EntryOf(h.ID()), entry)) })
			}
		})
		q := o.enqueue(t.Context(), t, Request{})
		_, item := p.record(t)
		if waiting := p.Core.ParseQueue(item).Without(stored.EntryOf(h.ID())); len(waiting) != 1 || waiting[0].ID == first {
			t.Errorf("alike %v: it came as %q, and %q stand there", alike, first, waiting)
		}
		rig.Must(h.End(t.Context(), End{}))(t)
		rig.Is(t, <-q.err)
		rig.Must((<-q.got).End(t.Context(), End{}))(t)
	}
}

// Who is handed the lock before it has left its place hears by the answer that the place was
// its own.
func TestAStalledEnqueueIsHandedTheLock(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	o := p.other(t).knows()
	enqueues, leaves := 0, 0
	o.Faults(func(_ string, _ int, body []byte) fault.Kind {
		switch {
		case bytes.Contains(body, []byte("list_append")):
			if enqueues++; enqueues == 1 {
				return fault.HoldResponse
			}
		case leaves == 0 && bytes.Contains(body, []byte(`"NULL":true`)):
			leaves++
			rig.Is(t, h.Extend(t.Context())) // sees who waits
			rig.Must(h.End(t.Context(), End{}))(t)
		}
		return fault.None
	})
	answer := make(chan *fault.Held, 1)
	go func() {
		held := <-o.Net.Held()
		for l, _ := p.record(t); l.Held == h.Token(); l, _ = p.record(t) {
			time.Sleep(time.Millisecond)
		}
		held.Release()
		answer <- held
	}()
	mine := o.take(t)
	<-answer
	if mine.Token() != h.Token()+1 || leaves != 1 {
		t.Errorf("token %d after %d, it tried to leave %d times", mine.Token(), h.Token(), leaves)
	}
	rig.Must(mine.End(t.Context(), End{}))(t)
}

// A client may end its goroutine, as a test's does by FailNow: in the enqueue, beside which the
// item was looked at for ever then, or in such a look, for which the enqueue waited for ever.
func TestAClientThatEndsItsGoroutineInAnEnqueue(t *testing.T) {
	for _, at := range []string{"UpdateItem", "GetItem"} {
		p := open(t, Config{Fair: true}).knows()
		var looks, all atomic.Int64
		looked := make(chan struct{})
		p.Count.OnRequest(func(op string, _ []byte) {
			if op == "GetItem" && looks.Add(1) == 1 {
				close(looked)
			}
			if op == "UpdateItem" && all.Add(1) == 1 {
				<-looked
			}
			if op == at {
				runtime.Goexit()
			}
		})
		var taken *Lock
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			taken, _, _ = p.Acquire(context.Background(), key, raw, Request{})
		}()
		select {
		case <-ended:
		case <-time.After(rig.Patience):
			t.Fatalf("%s: it waits for ever", at)
		}
		n := looks.Load()
		time.Sleep(4 * leastLost)
		if more := looks.Load() - n; more > 1 || (taken != nil) != (at == "GetItem") {
			t.Errorf("%s: %d looks since, lock %v", at, more, taken)
		}
	}
}

// A place that is far from its turn is not given up: the answer may come yet.
func TestALateEnqueueKeepsItsPlace(t *testing.T) {
	q := &queued{}
	q.forecast.Turn, q.forecast.Trip = 10*time.Millisecond, 5*time.Millisecond
	for ahead, want := range map[int]bool{0: true, 1: true, 3: true, 4: false, 30: false} {
		rig.Equal(t, q.near(ahead, 10*time.Millisecond), want, "%d ahead: near", ahead)
	}
}
