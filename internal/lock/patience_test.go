package lock

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/rig"
)

// One request of a holder, or its answer, that stands still holds up nobody who waits in
// the queue: the same bytes go out once more, and the verdict is about both.
func TestAStalledEndHoldsUpNobody(t *testing.T) {
	for _, kind := range []fault.Kind{fault.HoldRequest, fault.HoldResponse} {
		for as := range map[Ending]bool{Release: true, Commit: true} {
			t.Run(endings[as]+"/"+kind.String(), func(t *testing.T) {
				t.Parallel()
				p := open(t, Config{Fair: true})
				h := p.take(t)
				first := p.other(t).enqueue(t.Context(), t, Request{})
				second := p.other(t).enqueue(t.Context(), t, Request{})
				rig.Must(h.End(t.Context(), End{}))(t)
				rig.Is(t, <-first.err)
				mine := <-first.got
				first.Nth("UpdateItem", 0, kind)
				ended := make(chan error, 1)
				go func() {
					_, err := mine.End(t.Context(), endAs(as))
					ended <- err
				}()
				stalled := <-first.Net.Held() // and is not let go: its attempt ends by itself
				rig.Is(t, <-ended)
				stalled.Release()
				rig.Is(t, <-second.err)
				if got := <-second.got; got.Token() != mine.Token()+1 {
					t.Errorf("token %d after %d", got.Token(), mine.Token())
				}
				want := int64(1)
				if as == Commit {
					want = 2
				}
				if _, item := p.record(t); count(item) != want {
					t.Errorf("count %d, want %d", count(item), want)
				}
			})
		}
	}
}

// Where nobody waits, or the end is a delete, nothing goes out beside it.
func TestHedgesAreForEndsThatHandOver(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	late := func(h *Lock, how End) time.Duration { return p.hedge(h.learned(how)).After }
	rig.Equal(t, late(h, End{As: Commit}), 0, "alone")
	first := p.other(t).enqueue(t.Context(), t, Request{})
	second := p.other(t).enqueue(t.Context(), t, Request{})
	rig.Must(h.End(t.Context(), End{}))(t)
	rig.Is(t, <-first.err)
	mine := <-first.got
	for as, hedged := range map[Ending]bool{Commit: true, Release: true, Drop: false, Delete: false} {
		if d := late(mine, End{As: as}); d > 0 != hedged {
			t.Errorf("%s: %v", endings[as], d)
		}
	}
	rig.Must(mine.End(t.Context(), End{}))(t)
	rig.Is(t, <-second.err)
	rig.Must((<-second.got).End(t.Context(), End{}))(t)
	rig.Equal(t, p.hedge(pace.Learned{Trip: 20 * time.Millisecond}).Lost, 160*time.Millisecond, "lost where trips are long")
}

// An enqueue is not repeated before those whom a lock waits for are taken for dead: only
// the answer to the first attempt tells for certain whose place it has made.
func TestAnEnqueueIsGivenMoreThanAGrace(t *testing.T) {
	p := open(t, Config{Fair: true})
	q := &queued{acquiring: &acquiring{locker: p.Locker, Waiter: Waiter{Core: p.Core, Key: key, Raw: raw, Settings: Settings{Wait: p.Wait, Skew: p.Skew, Clock: p.Clock}}}}
	for n := range 3 {
		if _, opt := q.request(); opt.Timeout < 2*p.grace() || opt.Timeout > p.span()/3 {
			t.Errorf("attempt %d may last %v, a grace is %v", n+1, opt.Timeout, p.grace())
		}
		q.repeats.n++
	}
}

// A write that others wait for goes out twice where it is late, which is sooner where trips
// are uneven; of others nothing is sent twice.
func TestHedgesAreForQueues(t *testing.T) {
	const trip = 4 * time.Millisecond
	locker := &Locker{}
	for name, c := range map[string]struct {
		known pace.Learned
		after time.Duration
	}{
		"nobody waits":    {pace.Learned{}, 0},
		"trips are even":  {pace.Learned{Trip: trip}, 5 * trip},
		"and are uneven":  {pace.Learned{Trip: trip, Off: trip / 2}, 3 * trip / 2},
		"and are alike":   {pace.Learned{Trip: trip, Off: trip / 4}, 5 * trip},
		"turns are known": {pace.Learned{Turn: trip}, 0},
	} {
		rig.Equal(t, locker.hedge(c.known).After, c.after, "%s: after", name)
		rig.Equal(t, locker.hedge(c.known).Lost, 100*time.Millisecond, "%s: lost", name)
	}
}
