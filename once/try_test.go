package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
)

// began starts a run of an id, which goes on until end is called with its outcome.
func (s *store) began(t *testing.T, id string) (end func(error)) {
	t.Helper()
	began, outcome := make(chan struct{}), make(chan error)
	theirs := s.open(t, s.Peer().Client, once.Config{Owner: "clerk-1", Lease: time.Minute})
	var run sync.WaitGroup
	run.Go(func() {
		_, _ = once.Do(context.WithoutCancel(t.Context()), theirs, id, func(context.Context, once.Run) (receipt, error) {
			close(began)
			return receipt{7, "first"}, <-outcome
		})
	})
	<-began
	s.Count.Reset()
	return func(err error) { outcome <- err; run.Wait() }
}

// One who tries is told at once who runs the id, and until when, by one request; what was
// completed is given, what failed is run.
func TestTry(t *testing.T) {
	s := newStore(t)
	failed := errors.New("failed")
	for _, outcome := range []error{nil, failed} {
		id := fmt.Sprint(outcome)
		end := s.began(t, id)
		_, err := once.Try(t.Context(), s.Store, id, never(t))
		rig.Is(t, err, repo.ErrLocked)
		var who *repo.LockedError
		if left := time.Minute; !errors.As(err, &who) || who.Owner != "clerk-1" || who.Token == 0 || time.Until(who.Until) > left || time.Until(who.Until) < left/2 {
			t.Errorf("%+v", who)
		}
		rig.Equal(t, s.Count.Total(), 1, "%v", s.Count.Counts())
		end(outcome)
		s.Count.Reset()
		var runs atomic.Int64
		got := rig.Must(once.Try(t.Context(), s.Store, id, giving(&runs)))(t)
		if want := map[bool]receipt{true: {7, "first"}, false: {1, "paid"}}[outcome == nil]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		rig.Equal(t, rig.Must(once.Do(t.Context(), s.Store, id, never(t)))(t), got, "then")
	}
}

// A run whose lease is over is taken over; inside a run its own id is locked, too.
func TestTryOfOneThatIsDead(t *testing.T) {
	s := newStore(t)
	end := s.began(t, "order")
	s.set(t, "order", "SET lockTime = :n", 1)
	var runs atomic.Int64
	got := rig.Must(once.Try(t.Context(), s.Store, "order", func(ctx context.Context, r once.Run) (receipt, error) {
		_, err := once.Try(ctx, s.Store, "order", never(t))
		rig.Is(t, err, repo.ErrLocked)
		return giving(&runs)(ctx, r)
	}))(t)
	end(nil)
	if again := rig.Must(once.Try(t.Context(), s.Store, "order", never(t)))(t); again != got || got.Number != 1 {
		t.Errorf("%+v, then %+v", got, again)
	}
	_, err := once.Try(t.Context(), s.WithFingerprint([]byte("another")), "order", never(t))
	rig.Is(t, err) // the first one had none
	_, err = once.Try[receipt](t.Context(), s.Store, "order", nil)
	rig.Is(t, err, repo.ErrConfig)
	_, err = once.Try(t.Context(), s.Store, "", never(t))
	rig.Is(t, err, repo.ErrKey)
}

// Every fault at the requests of one who tries while another runs: the operation is never his,
// and what he is told is true. Many who try at once are one run.
func TestFaultsOfTry(t *testing.T) {
	for _, kind := range fault.AllKinds() {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			end := s.began(t, "order")
			client := s.Peer()
			faulty := s.open(t, client.Client, once.Config{Lease: time.Second, ClockSkew: -1})
			var n atomic.Int64
			client.Faults(func(string, int, []byte) fault.Kind {
				if n.Add(1) == 1 {
					return kind
				}
				return fault.None
			})
			if _, err := once.Try(t.Context(), faulty, "order", never(t)); err == nil {
				t.Error("it ends well while another runs")
			}
			client.Faults(nil)
			client.Net.Wait()
			_, err := once.Try(t.Context(), faulty, "order", never(t))
			rig.Is(t, err, repo.ErrLocked)
			end(nil)
			if got := rig.Must(once.Try(t.Context(), faulty, "order", never(t)))(t); got.Number != 7 {
				t.Errorf("%+v", got)
			}

			// The first request of one who finds nobody.
			n.Store(0)
			client.Faults(func(string, int, []byte) fault.Kind {
				if n.Add(1) == 1 {
					return kind
				}
				return fault.None
			})
			var runs atomic.Int64
			got, err := once.Try(t.Context(), faulty, "new", giving(&runs))
			client.Faults(nil)
			client.Net.Wait()
			if err == nil && (got.Number != 1 || runs.Load() != 1) || err != nil && runs.Load() != 0 {
				t.Errorf("%+v, %v, after %d runs", got, err, runs.Load())
			}
			first := rig.Must(once.Do(t.Context(), s.Store, "new", giving(&runs)))(t)
			if runs.Load() != 1 || first.Number != 1 {
				t.Errorf("%+v after %d runs", first, runs.Load())
			}
		})
	}
}

func TestManyTryAtOnce(t *testing.T) {
	s := newStore(t)
	var runs, refused atomic.Int64
	gate := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		theirs := s.open(t, s.Peer().Client, once.Config{})
		all.Go(func() {
			_, err := once.Try(t.Context(), theirs, "tick", func(ctx context.Context, r once.Run) (receipt, error) {
				<-gate
				return giving(&runs)(ctx, r)
			})
			if err != nil {
				rig.Is(t, err, repo.ErrLocked)
				if refused.Add(1) == 7 {
					close(gate)
				}
			}
		})
	}
	all.Wait()
	if runs.Load() != 1 || refused.Load() != 7 {
		t.Errorf("%d runs, %d refused", runs.Load(), refused.Load())
	}
}
