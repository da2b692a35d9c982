package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Who of a line asks at the table, and when.

// As many ask at once as permits were seen to be free.
func TestAsManyAskAsPermitsAreFree(t *testing.T) {
	besideAnother(t, semaphore.Config{Limit: 3, Lease: time.Hour}, func(t *testing.T, p, _ *process) {
		permits := []*semaphore.Permit{rig.Must(p.s.Acquire(t.Context(), "printer"))(t)}
		began := time.Now()
		for _, c := range []chan granted{p.acquire(t.Context()), p.acquire(t.Context())} {
			got := <-c
			rig.Is(t, got.err)
			permits = append(permits, got.permit)
		}
		if took := time.Since(began); took > 2*p.net.Latency {
			t.Errorf("it took %v, want one round trip", took)
		}
		for _, permit := range permits {
			rig.Is(t, permit.Release(t.Context()))
		}
		wantNone(t, p.s)
	})
}

// Whoever waits for others asks soon, and less and less often.
func TestWhoWaitsForOthersAsksLessAndLess(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		p.lose(nil)
		first := p.acquire(t.Context())
		time.Sleep(10 * time.Second)
		if n := p.sent.Load(); n < 20 || n > 80 {
			t.Errorf("%d requests in 10 s", n)
		}
		rig.Is(t, theirs.Release(t.Context()))
		serve(t, theirs, first)
		wantNone(t, p.s)
	})
}

// Whoever asks at the table just then is not passed a permit.
func TestAPermitIsNotPassedToWhoAsks(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, _ *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		asked := make(chan struct{}, 1)
		p.lose(func(body string) (before, after bool) {
			if passes(body) {
				t.Error("it was passed on")
			}
			if asks(body) {
				asked <- struct{}{}
				time.Sleep(20 * time.Millisecond)
			}
			return false, false
		})
		second := p.acquire(t.Context())
		<-asked
		rig.Is(t, first.Release(t.Context()))
		serve(t, first, second)
		wantNone(t, p.s)
		rig.Equal(t, p.s.LocalQueues(), 0, "lines of nobody")
	})
}

// Two permits that are given back at once go to two callers.
func TestTwoPermitsArePassedToTwo(t *testing.T) {
	besideAnother(t, semaphore.Config{Limit: 2, Lease: time.Hour}, func(t *testing.T, p, _ *process) {
		one, two := rig.Must(p.s.Acquire(t.Context(), "printer"))(t), rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		third, fourth := p.acquire(t.Context()), p.acquire(t.Context())
		p.lose(nil)
		ends := make(chan error)
		go func() { ends <- one.Release(t.Context()) }()
		rig.Is(t, two.Release(t.Context()))
		rig.Is(t, <-ends)
		for _, c := range []chan granted{third, fourth} {
			got := <-c
			rig.Is(t, got.err)
			rig.Equal(t, p.sent.Load(), 2, "requests to pass two permits on")
			defer func() { rig.Is(t, got.permit.Release(t.Context())) }()
		}
	})
}

// The next one goes on by itself where a permit was passed to the one before it, or could
// not be passed on.
func TestALineGoesOnByItself(t *testing.T) {
	t.Run("behind who was passed one", func(t *testing.T) {
		besideAnother(t, semaphore.Config{Limit: 2, Lease: time.Hour}, func(t *testing.T, p, other *process) {
			one, two := rig.Must(p.s.Acquire(t.Context(), "printer"))(t), rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
			third, fourth := p.acquire(t.Context()), p.acquire(t.Context())
			rig.Is(t, one.Release(t.Context()))
			got := <-third
			rig.Is(t, got.err)
			rig.Is(t, other.s.BreakPermit(t.Context(), "printer", two.ID()))
			began := time.Now()
			serve(t, got.permit, fourth)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			rig.Is(t, two.Release(t.Context()), repo.ErrLockLost)
			rig.Is(t, got.permit.Release(t.Context()))
			wantNone(t, p.s)
		})
	})
	t.Run("in a pause", func(t *testing.T) {
		besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
			first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
			second := p.acquire(t.Context())
			rig.Is(t, other.s.Pause(t.Context(), "printer"))
			rig.Is(t, first.Release(t.Context()))
			time.Sleep(10 * time.Second)
			rig.Is(t, other.s.Resume(t.Context(), "printer"))
			began := time.Now()
			serve(t, first, second)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			wantNone(t, p.s)
		})
	})
}

// A permit that is found to be lost is forgotten, also by who does not give it back.
func TestALostPermitLeavesNoLine(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		lost := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		rig.Is(t, other.s.BreakPermit(t.Context(), "printer", lost.ID()))
		rig.Is(t, lost.Extend(t.Context()), repo.ErrLockLost)
		rig.Equal(t, p.s.LocalQueues(), 0, "lines of nobody")
	})
}

// A permit that was passed on renews itself, whether its holder was told of it or has
// found it.
func TestPermitsThatWerePassedOnRenewThemselves(t *testing.T) {
	for name, loses := range map[string]bool{"it was told": false, "it has found it": true} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, semaphore.Config{Lease: 3 * time.Second, Table: repo.TableConfig{AttemptTimeout: 100 * time.Millisecond}}, func(t *testing.T, p, other *process) {
				first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				second := p.acquire(t.Context())
				p.lose(func(body string) (before, after bool) {
					if passes(body) && loses {
						p.lose(nil)
						return false, true
					}
					return false, false
				})
				rig.Is(t, first.Release(t.Context()))
				got := <-second
				rig.Is(t, got.err)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := other.s.Acquire(ctx, "printer")
				rig.Is(t, err, semaphore.ErrBusy, context.DeadlineExceeded)
				rig.Is(t, context.Cause(got.permit.Context()))
				rig.Is(t, got.permit.Release(t.Context()))
				wantNone(t, p.s)
			})
		})
	}
}
