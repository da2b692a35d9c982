package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

const (
	length = 30 * time.Second
	every  = length / 3
	margin = time.Second
)

// renewal is what a lease of the tests does to be renewed.
type renewal func(context.Context) error

func (r renewal) Renew(ctx context.Context, _ time.Time) error { return r(ctx) }
func (r renewal) Describe(err error) error                     { return fmt.Errorf("the lease: %w", err) }
func (r renewal) Name() (string, []slog.Attr)                  { return "lease", nil }

// begin makes a lease that lasts until end.
func begin(cfg lease.Config, end time.Time, renew renewal) *lease.Lease {
	cfg.Clock = time.Now
	return lease.New(&cfg, renew, end, end)
}

// keep makes a lease whose renewals answer at once as told; it counts them.
func keep(cfg lease.Config, answer func() error) (l *lease.Lease, renewals *[]time.Time) {
	renewals = new([]time.Time)
	l = begin(cfg, time.Now().Add(cfg.Length), func(context.Context) error {
		*renewals = append(*renewals, time.Now())
		return answer()
	})
	l.Start(context.Background())
	return l, renewals
}

// counting is a log that counts what it is told.
type counting struct {
	slog.Handler
	n *int
}

func (c counting) Enabled(context.Context, slog.Level) bool { return true }

func (c counting) Handle(context.Context, slog.Record) error { *c.n++; return nil }

func finish(l *lease.Lease) {
	if err := l.BeginLast(context.Background()); err != nil {
		panic(err)
	}
	defer l.Done()
	l.Finish(repo.ErrReleased)
}

// Where somebody works under a lease its end is told at the deadline, although nobody
// has its context; else nobody is woken for it.
func TestTheDeadlineIsReportedAtOnce(t *testing.T) {
	for _, reports := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			observe, err := telemetry.New(telemetry.Options{Log: slog.New(counting{n: &n}), ErrorType: func(error) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			l, _ := keep(lease.Config{Length: length, Observe: observe}, nil)
			if reports {
				l.Report()
				l.Report()
			}
			time.Sleep(length - margin)
			synctest.Wait()
			if told := n == 1; told != reports {
				t.Errorf("reports %v: %d events at the deadline", reports, n)
			}
			if cause := l.Cause(); !errors.Is(cause, repo.ErrLockExpired) {
				t.Errorf("reports %v: %v", reports, cause)
			}
			finish(l)
		})
	}
}

// Who asks for the context first when the deadline has passed gets one that has ended, and
// the end is told as if the timer had found it.
func TestAContextAfterTheDeadlineReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		observe, err := telemetry.New(telemetry.Options{Log: slog.New(counting{n: &n}), ErrorType: func(error) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		l, _ := keep(lease.Config{Length: length, Observe: observe}, nil)
		time.Sleep(length)
		for range 2 {
			if cause := context.Cause(l.Context()); !errors.Is(cause, repo.ErrLockExpired) || n != 1 {
				t.Errorf("cause %v, told %d times", cause, n)
			}
		}
		finish(l)
		if n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

func TestDeadlineEndsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := keep(lease.Config{Length: length}, nil)
		began := time.Now()
		<-l.Context().Done()
		if took := time.Since(began); took != length-margin {
			t.Errorf("ended after %v", took)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, repo.ErrLockExpired) {
			t.Errorf("cause %v", cause)
		}
		finish(l)
	})
}

func TestWithoutAnEndNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := keep(lease.Config{}, nil)
		time.Sleep(1000 * time.Hour)
		if l.Context().Err() != nil || l.Expired() || !l.Until().IsZero() {
			t.Errorf("ended: %v, until %v", context.Cause(l.Context()), l.Until())
		}
		finish(l)
	})
}

func TestRenewalKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, renewals := keep(lease.Config{Length: length, Every: every}, func() error { return nil })
		last := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.Context().Err() != nil {
			t.Fatalf("ended: %v", context.Cause(l.Context()))
		}
		for _, at := range *renewals {
			if gap := at.Sub(last); gap < every || gap > every+every/10+time.Millisecond {
				t.Errorf("renewed after %v", gap)
			}
			last = at
		}
		n := len(*renewals)
		finish(l)
		time.Sleep(time.Hour)
		if n < 300 || len(*renewals) != n {
			t.Errorf("%d renewals in an hour, %d after the end", n, len(*renewals)-n)
		}
	})
}

func TestRenewalsOfWhatWasTakenTogetherSpreadOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const locks = 200
		var all []*[]time.Time
		var leases []*lease.Lease
		for range locks {
			l, renewals := keep(lease.Config{Length: length, Every: every}, func() error { return nil })
			all, leases = append(all, renewals), append(leases, l)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		perSecond := map[int64]int{}
		for i, renewals := range all {
			perSecond[(*renewals)[len(*renewals)-1].Unix()]++
			finish(leases[i])
		}
		var counts []int
		for _, n := range perSecond {
			counts = append(counts, n)
		}
		if most := slices.Max(counts); most > locks/4 { // in step it would be all of them
			t.Errorf("%d of %d renewals in one second", most, locks)
		}
	})
}

func TestFailedRenewalsAreRepeatedUntilTheDeadline(t *testing.T) {
	for _, jumps := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sour, told := errors.New("sour"), 0
			observe, err := telemetry.New(telemetry.Options{Log: slog.New(counting{slog.DiscardHandler, &told})})
			if err != nil {
				t.Fatal(err)
			}
			l, renewals := keep(lease.Config{Length: length, Every: every, Jumps: jumps, Observe: observe}, func() error { return sour })
			began := time.Now()
			<-l.Context().Done()
			if took := time.Since(began); took != length-margin {
				t.Errorf("ended after %v", took)
			}
			cause := context.Cause(l.Context())
			if !errors.Is(cause, repo.ErrLockExpired) || !errors.Is(cause, sour) {
				t.Errorf("cause %v", cause)
			}
			synctest.Wait() // the end is told after the context has ended
			if n := len(*renewals); n < 10 || told < n-1 {
				t.Errorf("%d renewals tried, %d told", n, told)
			}
			finish(l)
		})
	}
}

func TestTheLastWriteRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := false
		l := begin(lease.Config{Length: length, Every: every}, time.Now().Add(length), func(ctx context.Context) error {
			under = true
			<-ctx.Done() // a request that is only ended by its context
			under = false
			return ctx.Err()
		})
		l.Start(context.Background())
		time.Sleep(every + every/10 + time.Millisecond)
		synctest.Wait()
		if !under {
			t.Fatal("no renewal is under way")
		}
		began := time.Now()
		if err := l.BeginLast(t.Context()); err != nil {
			t.Fatal(err)
		}
		if under || time.Since(began) != 0 {
			t.Errorf("a renewal is under way: %v; waited %v", under, time.Since(began))
		}
		l.Finish(repo.ErrReleased)
		l.Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, repo.ErrReleased) {
			t.Errorf("cause %v", cause)
		}
	})
}

// TestClaim: one renewal at a time of its own, repeated until it succeeds.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, failures := time.Now(), 2
		var renewals []time.Duration
		l := begin(lease.Config{Length: length}, began.Add(3*time.Second), func(context.Context) error {
			renewals = append(renewals, time.Since(began))
			if failures--; failures >= 0 {
				return errors.New("no answer")
			}
			return nil
		})
		l.Claim(began.Add(time.Second), 100*time.Millisecond)
		l.Start(context.Background())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []time.Duration{time.Second, 1100 * time.Millisecond, 1200 * time.Millisecond}; !slices.Equal(renewals, want) {
			t.Errorf("renewed after %v, want %v", renewals, want)
		}
		if l.Context().Err() != nil {
			t.Error("it ended")
		}
		finish(l)
	})
}

func TestAContextAskedForLate(t *testing.T) {
	cfg := lease.Config{Length: length}
	sour := errors.New("sour")
	for name, c := range map[string]struct {
		before func(l *lease.Lease) // after which the context is asked for
		after  time.Duration        // it ends so long after
		cause  error
	}{
		"at once":          {func(*lease.Lease) {}, length - margin, repo.ErrLockExpired},
		"in the middle":    {func(*lease.Lease) { time.Sleep(length / 2) }, length/2 - margin, repo.ErrLockExpired},
		"after the end":    {func(*lease.Lease) { time.Sleep(length) }, 0, repo.ErrLockExpired},
		"after Finish":     {func(l *lease.Lease) { _ = l.BeginLast(context.Background()); l.Finish(sour); l.Done() }, 0, sour},
		"after Forget":     {func(l *lease.Lease) { l.Forget(sour) }, 0, sour},
		"after two causes": {func(l *lease.Lease) { l.Expire(); l.Forget(sour) }, 0, repo.ErrLockExpired},
		"after a renewal": {func(l *lease.Lease) {
			time.Sleep(length / 2)
			_ = l.Begin(context.Background())
			l.Renewed(time.Now())
			l.Done()
		}, length - margin, repo.ErrLockExpired},
		"after a claim": {func(*lease.Lease) { time.Sleep(every + time.Second) }, length - margin - time.Second, repo.ErrLockExpired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := begin(cfg, time.Now().Add(cfg.Length), func(context.Context) error {
					return nil
				})
				if name == "after a claim" {
					l.Claim(time.Now().Add(every), every/10)
				}
				l.Start(context.Background())
				c.before(l)
				asked := time.Now()
				ended := l.Cause()
				<-l.Context().Done()
				if took := time.Since(asked); took != c.after || (ended != nil) != (took == 0) {
					t.Errorf("ended after %v; before that: %v", took, ended)
				}
				if cause := context.Cause(l.Context()); !errors.Is(cause, c.cause) || !errors.Is(l.Cause(), c.cause) {
					t.Errorf("cause %v, without a context %v", cause, l.Cause())
				}
				finish(l)
			})
		})
	}
}

// A claim that fell due while another request was under way set its timer to a
// time that had passed, again and again, until that request had its answer.
func TestAClaimBesideAnotherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals []time.Time
		began := time.Now()
		l := begin(lease.Config{Length: length}, began.Add(length), func(context.Context) error {
			renewals = append(renewals, time.Now())
			return nil
		})
		const due, again, request = time.Second, 100 * time.Millisecond, 2 * time.Second
		l.Claim(began.Add(due), again)
		l.Start(context.Background())
		if err := l.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(request)
		l.Done()
		time.Sleep(2 * again)
		finish(l) // waits for a renewal under way
		if len(renewals) != 1 || renewals[0].Sub(began) > request+again {
			t.Errorf("claimed %v after %v", renewals, began)
		}
	})
}

// A machine that was suspended shows in one clock only: its wall clock has gone on,
// the monotonic one has not. Where the wall clock was set back it is the other way.
// The deadline has passed as soon as either says so.
func TestEitherClockEndsIt(t *testing.T) {
	const gap = 10 * length
	for name, row := range map[string]struct {
		monotonic, wall time.Duration // how far off the end is, by each clock
		expired         bool
	}{
		"both go on":             {gap, gap, false},
		"suspended":              {gap, -gap, true},
		"the clock was set back": {-gap, gap, true},
	} {
		end := wallMoved(time.Now().Add(row.monotonic), row.wall-row.monotonic)
		if m, w := time.Until(end), time.Until(end.Round(0)); (m > 0) != (row.monotonic > 0) || (w > 0) != (row.wall > 0) {
			t.Fatalf("%s: the end is %v and %v off", name, m, w)
		}
		l := begin(lease.Config{Length: length}, end, nil)
		if l.Expired() != row.expired || (l.Cause() != nil) != row.expired {
			t.Errorf("%s: expired %v, cause %v", name, l.Expired(), l.Cause())
		}
	}
}

// wallMoved is a time with its wall clock moved by whole seconds, and its monotonic
// clock as it was: package time makes no such time. The wall clock's seconds stand
// above 30 bits of nanoseconds in its first word.
func wallMoved(at time.Time, by time.Duration) time.Time {
	*(*int64)(unsafe.Pointer(&at)) += int64(by/time.Second) << 30
	return at
}
