package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// wantFree demands that nobody holds a name; a fail-closed lock takes its row along.
func wantFree(t *testing.T, b bench, cfg mutex.Config, name string) {
	t.Helper()
	if row := b.row(t, name); row["lockedBy"] != nil || len(row) > 0 && cfg.Mode == mutex.FailClosed {
		t.Errorf("the row is %v", row)
	}
}

// Callers of one locker stand in line: each gets the lock from the one before, in the
// order in which they came, by one request, with a greater token.
func TestCallersOfOneLockerStandInLine(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		first := rig.Must(l.Lock(t.Context(), "printer"))(t)
		rig.Is(t, first.SetPayload(t.Context(), []byte("page 7")))
		const callers = 8
		var order []int
		last := first.Token()
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				lock, err := l.Lock(t.Context(), "printer")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // the lock guards it
				if lock.Token() <= last || string(lock.Payload()) != "page 7" {
					t.Errorf("token %d after %d, payload %q", lock.Token(), last, lock.Payload())
				}
				last = lock.Token()
				if err := lock.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
			rig.Await(t, "it stands in line", func() bool { return l.Waiting("printer") == i+1 })
		}
		b.Count.Reset()
		rig.Is(t, first.Unlock(t.Context()))
		all.Wait()
		if n := b.Count.Total(); n != callers+1 {
			t.Errorf("%d requests for %d locks, want one for each and one to end: %v", n, callers+1, b.Count.Counts())
		}
		if !slices.IsSorted(order) || len(order) != callers {
			t.Errorf("they had it in the order %v", order)
		}
		wantFree(t, b, cfg, "printer")
	})
}

// Whoever stands in line leaves it with its context, and says whom it waited for; Close
// sends all away.
func TestLeavingTheLine(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		held := rig.Must(l.Lock(t.Context(), "printer"))(t)
		ctx := rig.Shortly(t)
		b.Count.Reset()
		_, err := l.Lock(ctx, "printer")
		rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
		if by := (*repo.LockedError)(nil); !errors.As(err, &by) || by.Token != held.Token() {
			t.Errorf("%v does not say who holds it", err)
		}
		rig.Equal(t, b.Count.Total(), 0, "requests while a caller of this locker holds it")
		waits := make(chan error)
		go func() {
			_, err := l.Lock(t.Context(), "printer")
			waits <- err
		}()
		rig.Await(t, "it stands in line", func() bool { return l.Waiting("printer") == 1 })
		rig.Is(t, l.Close(t.Context()))
		rig.Is(t, <-waits, mutex.ErrClosed)
		wantFree(t, b, cfg, "printer")
	})
}

// The lock does not stay in one process while another wants it: after some hands it is
// let go, and the process stays away for longer than the others sleep between tries.
func TestALineLetsOtherProcessesIn(t *testing.T) {
	for _, mode := range []mutex.Mode{mutex.FailClosed, mutex.FailOpen} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBench(t)
			rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
				process := func() *mutex.Locker {
					return b.over(t, &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}, mutex.Config{Mode: mode, Race: true})
				}
				group, other := process(), process()
				held := rig.Must(other.Lock(t.Context(), "printer"))(t)
				var began []time.Time // guarded by the lock under test
				var all sync.WaitGroup
				for range 11 {
					all.Go(func() {
						rig.Is(t, group.Do(t.Context(), "printer", func(context.Context, *mutex.Lock) error {
							began = append(began, time.Now())
							return nil
						}))
					})
				}
				time.Sleep(time.Second)
				rig.Is(t, held.Unlock(t.Context()))
				all.Wait()
				for i := 1; i < len(began); i++ {
					if gap := began[i].Sub(began[i-1]); (gap >= 10*time.Millisecond) != (i%5 == 0) {
						t.Errorf("number %d has it after %v", i, gap)
					}
				}
			})
		})
	}
}

// Whatever is lost on the way, one at a time has the lock, each with a greater token
// than the one before, and nobody is left standing.
func TestALineUnderFaults(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		if cfg.Mode == mutex.FailOpen {
			cfg.Lease = 2 * time.Second
		}
		lockers := []*mutex.Locker{b.locker(t, cfg), b.locker(t, cfg)}
		random := rand.New(rand.NewPCG(1, 2)) // repeatable on purpose
		kinds := []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Resend, fault.Delay}
		if cfg.Mode == mutex.FailOpen { // fail-closed, a late copy may leave a hold that an operator must end
			kinds = append(kinds, fault.LateDuplicate)
		}
		b.Faults(func(string, int, []byte) fault.Kind {
			if random.IntN(10) > 0 {
				return fault.None
			}
			return kinds[random.IntN(len(kinds))]
		})
		ctx, cancel := context.WithTimeout(t.Context(), 4*rig.Patience)
		defer cancel()
		var inside, last atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range rig.Share(6, 30) {
					lock, err := lockers[i%2].Lock(ctx, "printer")
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside.Add(1); n != 1 && lock.Context().Err() == nil {
						t.Errorf("%d hold it", n)
					}
					if was := last.Swap(lock.Token()); was >= lock.Token() && cfg.Mode == mutex.FailOpen {
						t.Errorf("token %d after %d", lock.Token(), was)
					}
					inside.Add(-1)
					err = lock.Unlock(ctx)
					for err != nil && !lock.Over() {
						err = lock.Unlock(ctx)
					}
					if errors.Is(err, repo.ErrOutcomeUnknown) { // as an operator does
						_ = lockers[i%2].Break(ctx, "printer", lock.Token())
					}
				}
			})
		}
		all.Wait()
		b.Faults(nil)
		rig.Is(t, lockers[0].Do(t.Context(), "printer", func(context.Context, *mutex.Lock) error { return nil }))
		if n := lockers[0].Lines() + lockers[1].Lines(); n != 0 {
			t.Error(fmt.Sprint(n, " lines are left of nobody"))
		}
	})
}

// A lock that was kept for a caller who has left meanwhile is given back, as if by an unlock.
func TestALockKeptForACallerWhoHasLeft(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		left := make(chan struct{})
		slow := &rig.Intercept{Client: b.Client, Update: func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			out, err := send()
			if n == 2 { // which passes the lock on
				cancel()
				<-left
			}
			return out, err
		}}
		l := rig.Must(mutex.New(slow, b.Table, cfg))(t)
		held := rig.Must(l.Lock(t.Context(), "printer"))(t)
		go func() {
			defer close(left)
			if _, err := l.Lock(ctx, "printer"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		rig.Await(t, "it stands in line", func() bool { return l.Waiting("printer") == 1 })
		rig.Is(t, held.Unlock(t.Context()))
		wantFree(t, b, cfg, "printer")
	})
}

// Where nobody knows whether a note was made, the next caller of the process, who else has the
// lock without a read, finds what the row has. A fail-closed row may go with its lock.
func TestANoteInDoubtIsReadByTheNextCaller(t *testing.T) {
	for want, first := range map[string]fault.Kind{"page 8": fault.LoseResponse, "page 7": fault.DropRequest} {
		eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
			l := b.locker(t, cfg)
			held := rig.Must(l.Lock(t.Context(), "printer"))(t)
			rig.Is(t, held.SetPayload(t.Context(), []byte("page 7")))
			n := 0
			b.Faults(func(string, int, []byte) fault.Kind {
				if n++; n == 1 {
					return first
				}
				return fault.DropRequest
			})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			rig.Is(t, held.SetPayload(ctx, []byte("page 8")), repo.ErrOutcomeUnknown)
			b.Faults(nil)
			next := make(chan *mutex.Lock)
			go func() {
				lock, err := l.Lock(t.Context(), "printer")
				rig.Is(t, err)
				next <- lock
			}()
			rig.Await(t, "it stands in line", func() bool { return l.Waiting("printer") == 1 })
			rig.Is(t, held.Unlock(t.Context()))
			got, row := <-next, rig.Must(l.Inspect(t.Context(), "printer"))(t)
			if string(got.Payload()) != string(row.Payload) || cfg.Mode == mutex.FailOpen && string(row.Payload) != want {
				t.Errorf("payload %q, of the row %q, want %q", got.Payload(), row.Payload, want)
			}
			rig.Is(t, got.Unlock(t.Context()))
		})
	}
}
