package semaphore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

// round is what a process does with one permit of the table.
type round struct {
	from, back time.Time // asked for, given back
	hands      int       // how often it was passed on in between
}

// rounds lets so many callers who stand in line have a permit for a while each.
func (p *process) rounds(t *testing.T, callers int, hold time.Duration) (all []round) {
	t.Helper()
	var mu sync.Mutex
	p.lose(func(body string) (before, after bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case asks(body) && (len(all) == 0 || !all[len(all)-1].back.IsZero()):
			all = append(all, round{from: time.Now()})
		case passes(body):
			all[len(all)-1].hands++
		case givesBack(body):
			all[len(all)-1].back = time.Now()
		}
		return false, false
	})
	var line sync.WaitGroup
	for range callers {
		line.Go(func() {
			rig.Is(t, p.s.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(hold); return nil }))
		})
		synctest.Wait()
	}
	line.Wait()
	p.lose(nil)
	return all
}

// hands is how often a permit of each round is passed on, but for the last one, which
// ends with the line.
func hands(all []round) (n []int) {
	for _, r := range all[:len(all)-1] {
		n = append(n, r.hands)
	}
	return n
}

// A permit goes from hand to hand so often, and for so long; then the process stays away
// from the table for a moment, in which others have their turn.
func TestAPermitStaysInOneProcessForAWhileOnly(t *testing.T) {
	for name, c := range map[string]struct {
		hold time.Duration
		want []int
	}{
		"so often":               {time.Millisecond, []int{8, 8, 8}},
		"for a tenth of a lease": {400 * time.Millisecond, []int{2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, semaphore.Config{Lease: 10 * time.Second}, func(t *testing.T, p, _ *process) {
				callers := 1
				for _, n := range c.want {
					callers += n + 1
				}
				all := p.rounds(t, callers, c.hold)
				if got := hands(all); !slices.Equal(got, c.want) {
					t.Fatalf("permits were passed on %v times, want %v", got, c.want)
				}
				for i, r := range all[1:] {
					if away := r.from.Sub(all[i].back) - 2*p.net.Latency; away < 10*time.Millisecond || away > 30*time.Millisecond {
						t.Errorf("the process stays away for %v", away)
					}
				}
				wantNone(t, p.s)
			})
		})
	}
}

// Where others are seen to use the resource, a permit is passed on less often, and so it
// is for two seconds more.
func TestPermitsArePassedOnLessOftenWhereOthersWantThem(t *testing.T) {
	for name, c := range map[string]struct {
		limit  int
		others func(t *testing.T, p, other *process)
		want   int
	}{
		"a permit of theirs": {2, func(t *testing.T, _, other *process) { rig.Must(other.s.Acquire(t.Context(), "printer"))(t) }, 4},
		"a job in line":      {1, func(t *testing.T, _, other *process) { enqueue(t, other) }, 4},
		"a job that comes meanwhile": {1, func(t *testing.T, _, other *process) {
			time.AfterFunc(3*time.Millisecond, func() { enqueue(t, other) })
		}, 4},
		"a job that runs": {2, func(t *testing.T, _, other *process) {
			enqueue(t, other)
			rig.Must(other.jobs(t).Next(t.Context(), "printer"))(t)
		}, 4},
		"a caller of their own process, who has no answer yet": {2, func(t *testing.T, p, _ *process) {
			first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
			p.lose(func(body string) (before, after bool) { return false, asks(body) })
			p.acquire(t.Context())
			rig.Is(t, first.Release(t.Context()))
		}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, semaphore.Config{Limit: c.limit, Lease: time.Hour}, func(t *testing.T, p, other *process) {
				c.others(t, p, other)
				rig.Equal(t, p.rounds(t, 2*c.want+4, time.Millisecond)[0].hands, c.want, "a permit was passed on times")
			})
		})
	}
}

func TestPermitsArePassedOnMoreOftenAfterOthersHaveLeft(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		left, before, after := time.Now(), 0, 0
		time.AfterFunc(3*p.net.Latency, func() { rig.Is(t, theirs.Release(t.Context())) }) // when the first was refused
		all := p.rounds(t, 50, 100*time.Millisecond)
		for i, n := range hands(all) {
			switch from, back := all[i].from.Sub(left), all[i].back.Sub(left); {
			case back < 1900*time.Millisecond && n == 4:
				before++
			case from > 2100*time.Millisecond && n == 8:
				after++
			case back < 1900*time.Millisecond || from > 2100*time.Millisecond:
				t.Errorf("passed on %d times, from %v to %v after they have left", n, from, back)
			}
		}
		if before < 2 || after < 2 {
			t.Errorf("%d rounds soon after that, %d later", before, after)
		}
	})
}

// A permit does not stay in one process while another waits for it.
func TestALineOfPermitsLetsOthersIn(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				for ctx.Err() == nil {
					err := p.s.Do(ctx, "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(10 * time.Millisecond); return nil })
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		began := time.Now()
		const rounds = 10
		for range rounds {
			rig.Is(t, other.s.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(10 * time.Millisecond); return nil }))
		}
		took := time.Since(began)
		cancel()
		all.Wait()
		if took > rounds*3*time.Second {
			t.Errorf("%v for %d permits", took, rounds)
		}
		wantNone(t, p.s)
	})
}

// A process that dies with a permit and a line behind it keeps others out for its lease.
func TestALineWhoseProcessIsKilled(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: 10 * time.Second}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		second := p.acquire(ctx)
		p.net.Dead.Store(true)
		_ = first.Release(t.Context())
		began := time.Now()
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		if took := time.Since(began); took > 13*time.Second || theirs.Token() <= first.Token() {
			t.Errorf("token %d after %d, after %v", theirs.Token(), first.Token(), took)
		}
		p.net.Dead.Store(false)
		rig.Is(t, theirs.Release(t.Context()))
		cancel()
		<-second
		wantNone(t, other.s)
	})
}
