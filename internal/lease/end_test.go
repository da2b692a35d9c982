package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

// What an end leaves behind, by the answers to the write that ends a lease.
func TestEnd(t *testing.T) {
	sour, why := errors.New("sour"), errors.New("why")
	unknown, refused := ddb.Result{Outcome: ddb.Unknown, Err: sour}, ddb.Result{Clean: true, Err: sour}
	applied, gone := ddb.Result{Outcome: ddb.Applied, Clean: true}, ddb.Result{Outcome: ddb.Condition, Clean: true}
	for name, c := range map[string]struct {
		answers      []ddb.Result
		clean        bool  // as the judge is told
		verdict      error // of the judge
		cause, ended error
	}{
		"applied":                 {[]ddb.Result{applied}, true, nil, why, why},
		"applied after no answer": {[]ddb.Result{unknown, unknown, applied}, false, nil, why, why},
		"gone after no answer":    {[]ddb.Result{unknown, gone}, false, sour, why, nil},
		"refused":                 {[]ddb.Result{refused}, true, sour, why, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := begin(lease.Config{Length: length, Every: every, Pause: ddb.Backoff{Min: 1, Max: 2}}, time.Now().Add(length), func(context.Context) error {
					t.Error("it was renewed")
					return nil
				})
				l.Start(context.Background())
				sent := 0
				send := func() (ddb.Result, bool) { sent++; return c.answers[sent-1], false }
				err := l.End(t.Context(), why, send, func(res ddb.Result) error {
					if res.Outcome != c.answers[len(c.answers)-1].Outcome || res.Clean != c.clean {
						t.Errorf("judged by %+v", res)
					}
					return c.verdict
				})
				if !errors.Is(err, c.verdict) || sent != len(c.answers) {
					t.Errorf("%v after %d requests", err, sent)
				}
				if !errors.Is(l.Cause(), c.cause) || !errors.Is(l.Ended(), c.ended) {
					t.Errorf("cause %v, ended %v", l.Cause(), l.Ended())
				}
				time.Sleep(length) // nothing renews it any more
			})
		})
	}
}

// A lease ends once. Who could not send the write that ends it, for another one
// was under way, does not know what became of it.
func TestEndOfWhatIsEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hung(every)
		decided := make(chan struct{})
		first := make(chan error)
		go func() {
			first <- l.End(t.Context(), repo.ErrReleased, func() (ddb.Result, bool) { <-decided; return ddb.Result{Outcome: ddb.Applied}, false },
				func(ddb.Result) error { return nil })
		}()
		synctest.Wait()
		again := func(ctx context.Context) error {
			return l.End(ctx, repo.ErrReleased, func() (ddb.Result, bool) { t.Error("it was sent twice"); return ddb.Result{}, false }, nil)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := again(ctx); !errors.Is(err, repo.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside another: %v", err)
		}
		close(decided)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := again(t.Context()); !errors.Is(err, repo.ErrReleased) {
			t.Errorf("after it: %v", err)
		}
	})
}

// Ends only grow, whatever the clock does, and a lease without one writes none
// that others could reach.
func TestEndsOnlyGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		cfg := &lease.Config{Length: length, Clock: func() time.Time { return now }}
		l := lease.New(cfg, renewal(nil), now.Add(length), now.Add(length))
		_, first := l.NextEnd()
		now = now.Add(-time.Hour)
		_, second := l.NextEnd()
		now = now.Add(2 * time.Hour)
		_, third := l.NextEnd()
		if !first.After(now.Add(-time.Hour+length)) || !second.After(first) || !third.Equal(now.Add(length)) {
			t.Errorf("%v, %v, %v", first, second, third)
		}
		if _, never := lease.New(&lease.Config{}, renewal(nil), now, now).NextEnd(); !never.Equal(ddb.Never()) {
			t.Errorf("without an end: %v", never)
		}
	})
}

// What is held has no change but its function's: of that alone the verdict is, whatever the
// release came to.
func TestVerdictsOfDo(t *testing.T) {
	sour := errors.New("sour")
	for _, c := range []struct {
		fn, release error
		want        repo.Verdict
	}{
		{nil, nil, repo.Written},
		{nil, repo.ErrOutcomeUnknown, repo.Written},
		{nil, repo.ErrLockLost, repo.Written},
		{sour, nil, repo.NotWritten},
		{sour, repo.ErrOutcomeUnknown, repo.NotWritten}, // it was Unknown
		{repo.ErrConflict, repo.ErrOutcomeUnknown, repo.NotWritten},
		{repo.ErrOutcomeUnknown, nil, repo.Unknown},
		{repo.ErrOutcomeUnknown, repo.ErrLockLost, repo.Unknown},
		{repo.ErrDone, repo.ErrOutcomeUnknown, repo.Written},
	} {
		err := lease.Do(t.Context(), func(context.Context) (held, error) { return held{}, nil }, held.inside,
			func(context.Context, held) error { return c.fn }, func(held, context.Context) error { return c.release })
		if got := repo.VerdictOf(err); got != c.want || !errors.Is(err, c.fn) && c.fn != nil || !errors.Is(err, c.release) && c.release != nil {
			t.Errorf("%v, then %v: %v, %v, want %v", c.fn, c.release, err, got, c.want)
		}
	}
}

// Whether a Do may be made again its function says, too: that of an error of its own fails of
// that again. What ended by the context of a hold that is lost does not.
func TestRetryingADo(t *testing.T) {
	sour, throttled := errors.New("sour"), &types.ProvisionedThroughputExceededException{}
	for _, c := range []struct {
		fn, release error
		want        bool
	}{
		{sour, nil, false},
		{sour, repo.ErrLockLost, false},
		{sour, throttled, false},
		{context.Canceled, repo.ErrLockLost, true},
		{fmt.Errorf("GET: %w", context.DeadlineExceeded), repo.ErrLockExpired, true},
		{context.Canceled, throttled, false},
		{repo.ErrConflict, nil, true},
		{repo.ErrConflict, repo.ErrOutcomeUnknown, true},
		{repo.ErrLockLost, repo.ErrLockLost, true},
		{nil, repo.ErrLockLost, false},
	} {
		err := lease.Do(t.Context(), func(context.Context) (held, error) { return held{}, nil }, held.inside,
			func(context.Context, held) error { return c.fn }, func(held, context.Context) error { return c.release })
		if got := repo.Retryable(err); got != c.want || !errors.Is(err, c.release) && c.release != nil {
			t.Errorf("%v, then %v: %v, again %v, want %v", c.fn, c.release, err, got, c.want)
		}
	}
}

// What was not taken is nobody's, or nobody knows: the function has not run.
func TestVerdictOfADoThatHasNotRun(t *testing.T) {
	err := lease.Do(t.Context(), func(context.Context) (held, error) { return held{}, repo.ErrOutcomeUnknown }, held.inside,
		func(context.Context, held) error { return nil }, func(held, context.Context) error { return nil })
	if repo.VerdictOf(err) != repo.NotWritten || !errors.Is(err, repo.ErrOutcomeUnknown) {
		t.Errorf("%v: %v", err, repo.VerdictOf(err))
	}
}

type held struct{}

func (held) Context() context.Context { return context.Background() }

func (held) inside(ctx context.Context) context.Context { return ctx }

// A clock of the program's own that panics harms the call that asks it, and none after it.
func TestAClockThatPanics(t *testing.T) {
	for name, call := range map[string]func(l *lease.Lease){
		"Context": func(l *lease.Lease) { l.Context() },
		"Report":  func(l *lease.Lease) { l.Report() },
		"Cause":   func(l *lease.Lease) { _ = l.Cause() },
		"Left":    func(l *lease.Lease) { l.Left() },
		"Start":   func(l *lease.Lease) { l.Start(context.Background()) },
		"Extend":  func(l *lease.Lease) { _ = l.Extend(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			for nth := range 4 { // of the times that the clock is asked
				synctest.Test(t, func(t *testing.T) {
					asked := 0
					cfg := &lease.Config{Length: length, Jumps: true, Clock: func() time.Time {
						if asked++; asked == nth+1 {
							panic("no clock")
						}
						return time.Now()
					}}
					l := lease.New(cfg, renewal(func(context.Context) error { return nil }), time.Now().Add(length), time.Now().Add(length))
					func() {
						defer func() { _ = recover() }()
						call(l)
					}()
					asked = nth + 1
					ended := make(chan error, 1)
					go func() { <-l.Context().Done(); ended <- context.Cause(l.Context()) }()
					synctest.Wait()
					time.Sleep(2 * length)
					synctest.Wait()
					select {
					case err := <-ended:
						if !errors.Is(err, repo.ErrLockExpired) {
							t.Errorf("%d: %v", nth, err)
						}
					default:
						t.Errorf("%d: its context goes on", nth)
					}
				})
			}
		})
	}
}
