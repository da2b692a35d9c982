package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

// An extension that is answered after the deadline comes too late for whoever has been told
// that the lease is over: it says so, and nothing is renewed any more.
func TestAnExtensionThatIsAnsweredTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewals := 0
		l := begin(lease.Config{Length: length, Every: every}, time.Now().Add(length), func(context.Context) error {
			if renewals++; renewals == 1 {
				time.Sleep(length)
			}
			return nil
		})
		l.Start(t.Context())
		over := l.Context()
		if err := l.Extend(t.Context()); !errors.Is(err, repo.ErrLockExpired) {
			t.Errorf("error %v", err)
		}
		if cause := context.Cause(over); !errors.Is(cause, repo.ErrLockExpired) {
			t.Errorf("cause %v", cause)
		}
		time.Sleep(10 * length)
		if n := lease.Renewed(); renewals != 1 || n != 0 {
			t.Errorf("%d renewals, %d leases are counted for more", renewals, n)
		}
	})
}

// The deadline counts from when a renewal was sent: others count from no later than that.
func TestARenewalCountsFromWhenItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(lease.Config{Length: length}, time.Now().Add(length), func(context.Context) error {
			time.Sleep(length / 3)
			return nil
		})
		asked := time.Now()
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		if until, want := l.Until(), asked.Add(length-margin); !until.Equal(want) {
			t.Errorf("until %v, want %v", until, want)
		}
	})
}

// What is over is not renewed: nothing is sent.
func TestWhatIsOverIsNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(lease.Config{Length: length}, time.Now().Add(length), func(context.Context) error {
			t.Error("a renewal was sent")
			return nil
		})
		time.Sleep(length)
		if err := l.Extend(t.Context()); !errors.Is(err, repo.ErrLockExpired) {
			t.Errorf("error %v", err)
		}
	})
}

// Who finds its hold gone has lost it, unless a write of its own without an answer may
// have ended it.
func TestWhatIsFoundGone(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := begin(lease.Config{Length: length, Pause: ddb.Backoff{Min: time.Second / 4, Max: time.Second}}, time.Now().Add(length), nil)
			want := repo.ErrLockLost
			if doubt {
				want = repo.ErrReleased
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				silent := errors.New("no answer")
				_ = l.End(ctx, repo.ErrReleased, func() (ddb.Result, bool) { return ddb.Result{Outcome: ddb.Unknown, Err: silent}, false },
					func(ddb.Result) error { return silent })
			}
			if err := l.BeginLast(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer l.Done()
			if err := l.Missing(); !errors.Is(err, want) {
				t.Errorf("in doubt %v: %v, want %v", doubt, err, want)
			}
		})
	}
}

// The context ends at the deadline, however long a request takes that was to move it, and
// whether or not that obeys its own context.
func TestTheDeadlineDoesNotWaitForARenewal(t *testing.T) {
	for name, keep := range map[string]func(l *lease.Lease){
		"a renewal":    func(l *lease.Lease) { l.Start(context.Background()) },
		"a claim":      func(l *lease.Lease) { l.Claim(time.Now().Add(length/2), length/8); l.Start(context.Background()) },
		"an extension": func(l *lease.Lease) { go func() { _ = l.Extend(context.Background()) }() },
	} {
		for _, answer := range []error{nil, errors.New("no answer"), repo.ErrLockLost} {
			for _, jumps := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					cfg := lease.Config{Length: length, Jumps: jumps}
					if name == "a renewal" {
						cfg.Every = every
					}
					var answered atomic.Bool
					l := begin(cfg, time.Now().Add(length), func(context.Context) error {
						time.Sleep(2 * length)
						answered.Store(true)
						return answer
					})
					until := l.Until()
					over := l.Context()
					keep(l)
					<-over.Done()
					if late := time.Since(until); late < 0 || late > 0 || answered.Load() {
						t.Errorf("%s, answered by %v, jumps %v: it ended %v after its deadline", name, answer, jumps, late)
					}
					if cause := context.Cause(over); !errors.Is(cause, repo.ErrLockExpired) {
						t.Errorf("%s: cause %v", name, cause)
					}
					time.Sleep(5 * length)
					if n := lease.Renewed(); n != 0 {
						t.Errorf("%s, answered by %v: %d leases are counted for more", name, answer, n)
					}
				})
			}
		}
	}
}

// A clock of the program's own is looked at all the time, also between the tries of a
// renewal that fails, and while one waits for its turn among thousands.
func TestAClockThatJumpsIsSeenAtOnce(t *testing.T) {
	const length, every = 3 * time.Second, time.Second
	for name, c := range map[string]struct {
		others int
		answer error
	}{
		"while nothing fails":         {},
		"after a failed renewal":      {answer: errors.New("away")},
		"while renewals wait in line": {others: 600},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ahead atomic.Int64
				clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
				cfg := &lease.Config{Length: length, Every: every, Jumps: true, Clock: clock}
				var over []context.Context
				for range c.others + 1 {
					l := lease.New(cfg, renewal(func(context.Context) error { return c.answer }), time.Now().Add(length), clock().Add(length))
					l.Start(t.Context())
					over = append(over, l.Context())
					defer finish(l)
				}
				time.Sleep(every + every/20)
				ahead.Store(int64(length))
				time.Sleep(2 * ddb.ClockLook)
				synctest.Wait()
				n := 0
				for _, ctx := range over {
					if cause := context.Cause(ctx); !errors.Is(cause, repo.ErrLockExpired) {
						n++
					}
				}
				if n > 0 {
					t.Errorf("%d go on", n)
				}
			})
		})
	}
}
