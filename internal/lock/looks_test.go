package lock

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// shown is an item as an answer shows it, with the token that is next.
func shown(token int64) ddb.Item {
	return ddb.Item{"id": ddb.Text("beans"), "lockToken": ddb.Integer(token)}
}

// An answer is believed if it is certainly newer than the one before.
func TestAnswersInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "shelf"}, Attr: stored.Attributes{LockToken: "lockToken"}}))
		s := newLooks(t.Context(), core, shown(5), time.Now())
		defer s.end()
		first := time.Now()
		time.Sleep(time.Millisecond)
		second := time.Now()
		time.Sleep(time.Millisecond) // both are under way
		for i, answer := range []struct {
			what     string
			item     ddb.Item
			asked    time.Time
			believed bool
		}{
			{"it was sent after the answer that it is compared with", shown(5), second, true},
			{"it was sent before, and shows no more", shown(5), first, false},
			{"it was sent before, and shows what has been since", shown(6), first, true},
			{"it was sent before, and shows what was", shown(5), second, false},
			{"it was sent before, and shows no item", ddb.Item{}, second, false},
			{"it was sent before, and shows what nobody can read", ddb.Item{"lockToken": ddb.Text("7")}, second, false},
		} {
			if got := s.believe(core, answer.item, answer.asked); got != answer.believed {
				t.Errorf("%d, %s: believed is %v", i, answer.what, got)
			}
		}
		time.Sleep(time.Millisecond)
		if !s.believe(core, ddb.Item{}, time.Now()) {
			t.Error("the item is gone, and the newest look is not believed")
		}
	})
}

// Larger items are looked at less often, by what a look bills.
func TestSpacingByReadUnits(t *testing.T) {
	c := &Config{Lease: 30 * time.Second}
	for size, units := range map[int]int{100: 1, 4000: 1, 5000: 2, 400_000: 98} {
		got := c.spacing(ddb.Item{"note": ddb.Text(string(make([]byte, size)))})
		if got.Least != time.Duration(units)*perUnit || got.Limit != c.glance() {
			t.Errorf("%d bytes: %+v, want %d units", size, got, units)
		}
		// Two waiters look at a time.
		if a := 2 * float64(units) / got.Least.Seconds(); a > 3000 {
			t.Errorf("%d bytes: %.0f units a second", size, a)
		}
	}
}

// Looks that are lost together are one silence: the next one waits twice as long, not
// twice for each.
func TestLooksLostTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queued{acquiring: &acquiring{locker: &Locker{Config: Config{Lease: 30 * time.Second, Wait: repo.Wait{Max: time.Second}}}}}
		lost := func(asked time.Time) error {
			image, err := q.answer(t.Context(), look{asked, ddb.Result{Outcome: ddb.Refused, Again: true, Err: context.DeadlineExceeded}})
			if image != nil {
				t.Error("nobody answered")
			}
			return err
		}
		began := time.Now()
		time.Sleep(time.Second)
		for i := range 4 {
			if err := lost(began.Add(time.Duration(i) * time.Millisecond)); err != nil || q.failed != 1 {
				t.Errorf("%d of one silence, %v", q.failed, err)
			}
		}
		asked := time.Now()
		time.Sleep(time.Second)
		if err := lost(asked); err != nil || q.failed != 2 {
			t.Errorf("%d, %v", q.failed, err)
		}
		time.Sleep(30 * time.Second)
		if lost(time.Now()) == nil {
			t.Error("it looks on after a lease without an answer")
		}
	})
}

// A look that ends its goroutine, as a client's does that calls FailNow, has ended: of those who
// wait none was sent any more once there were thirteen such.
func TestLooksThatEndTheirGoroutine(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	o := p.other(t)
	o.Count.OnRequest(func(op string, _ []byte) {
		if op == "GetItem" {
			runtime.Goexit()
		}
	})
	q := o.enqueue(rig.Shortly(t), t, Request{})
	rig.Is(t, <-q.err, goroutine.ErrEnded)
	if _, item := p.record(t); len(p.Core.ParseQueue(item).Without(stored.EntryOf(h.ID()))) != 0 {
		t.Error("it stands in the queue yet")
	}
	rig.Must(h.End(t.Context(), End{}))(t)
}

// A lock may be held for long: it keeps nothing of what its looks have shown.
func TestLooksOfALockKeepNothing(t *testing.T) {
	core := protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "shelf"}, Attr: stored.Attributes{LockToken: "lockToken"}}))
	s := newLooks(t.Context(), core, shown(5), time.Now())
	s.ended = []look{{asked: time.Now()}}
	s.forget()
	s.note(look{asked: time.Now()})
	if _, ended, _ := s.take(); ended {
		t.Error("a look is kept")
	}
}
