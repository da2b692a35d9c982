package ddb_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
)

// held is something that lasts until it is ended, and counts for how many contexts it
// was asked.
type held struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	asked int
}

func newHeld() *held {
	h := &held{}
	h.ctx, h.end = context.WithCancelCause(context.Background())
	return h
}

func (h *held) Cause() error { return context.Cause(h.ctx) }

func (h *held) Context() context.Context {
	h.asked++
	return h.ctx
}

var (
	errLost = errors.New("lost")
	errLeft = errors.New("left")
)

type name struct{}

// What a context that was merged says, whoever looks first and however: the end of the
// caller's, or of what is held, with the cause.
func TestAMergedContextEndsWithTheFirstEnd(t *testing.T) {
	looks := map[string]func(context.Context) error{
		"Err":   func(ctx context.Context) error { return ctx.Err() },
		"Cause": context.Cause,
		"Done": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"a child": func(ctx context.Context) error {
			child, cancel := context.WithCancel(context.WithValue(ctx, name{}, "below"))
			defer cancel()
			<-child.Done()
			return child.Err()
		},
		"the cause of a child": func(ctx context.Context) error {
			child, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-child.Done()
			return context.Cause(child)
		},
		"AfterFunc": func(ctx context.Context) error {
			told := make(chan error)
			context.AfterFunc(ctx, func() { told <- ctx.Err() })
			return <-told
		},
	}
	for ends, c := range map[string]struct {
		end   func(left context.CancelCauseFunc, h *held, over context.CancelFunc)
		cause error
	}{
		"the caller has left": {func(left context.CancelCauseFunc, _ *held, _ context.CancelFunc) { left(errLeft) }, errLeft},
		"it was lost":         {func(_ context.CancelCauseFunc, h *held, _ context.CancelFunc) { h.end(errLost) }, errLost},
		"both, unseen":        {func(left context.CancelCauseFunc, h *held, _ context.CancelFunc) { h.end(errLost); left(errLeft) }, errLeft},
		"the call is over":    {func(_ context.CancelCauseFunc, _ *held, over context.CancelFunc) { over() }, context.Canceled},
	} {
		for how, look := range looks {
			for _, early := range []bool{false, true} { // somebody waits before it ends
				if early && ends == "both, unseen" {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					h := newHeld()
					caller, left := context.WithCancelCause(context.WithValue(t.Context(), name{}, "caller"))
					defer left(nil)
					ctx, over := ddb.While(caller, h)
					defer over()
					if early {
						ctx.Done()
					}
					if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(name{}) != "caller" {
						t.Fatalf("%s, seen by %s: before the end: %v, %v, %v", ends, how, ctx.Err(), context.Cause(ctx), ctx.Value(name{}))
					}
					c.end(left, h, over)
					if early {
						synctest.Wait() // until who waits was told
					}
					want, err := c.cause, look(ctx)
					if how == "Cause" || how == "the cause of a child" {
						if !errors.Is(err, want) {
							t.Errorf("%s (early %v), seen by %s: cause %v, want %v", ends, early, how, err, want)
						}
					} else if !errors.Is(err, context.Canceled) {
						t.Errorf("%s (early %v), seen by %s: %v", ends, early, how, err)
					}
					left(errors.New("later")) // the first cause stays
					h.end(errors.New("later"))
					over()
					synctest.Wait()
					if cause := context.Cause(ctx); !errors.Is(cause, want) {
						t.Errorf("%s (early %v), seen by %s: cause %v in the end, want %v", ends, early, how, cause, want)
					}
					if ctx.Value(name{}) != "caller" {
						t.Errorf("%s: the value is %v", ends, ctx.Value(name{}))
					}
				})
			}
		}
	}
}

// Nobody waits: then nothing is held that would have to be told, and nothing is left.
func TestAContextThatNobodyWaitsForCostsNothing(t *testing.T) {
	h := newHeld()
	caller, left := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer left()
	before := runtime.NumGoroutine()
	for range 100 {
		ctx, over := ddb.While(caller, h)
		at, ok := ctx.Deadline()
		if want, _ := caller.Deadline(); !ok || !at.Equal(want) {
			t.Fatalf("deadline %v, %v", at, ok)
		}
		if ctx.Err() != nil || ctx.Value(name{}) != nil || context.Cause(context.WithoutCancel(ctx)) != nil {
			t.Fatal("it has ended")
		}
		over()
	}
	if h.asked != 0 {
		t.Errorf("%d contexts of what is held", h.asked)
	}
	// Somebody waits: that costs no goroutine, also not for contexts below it.
	ctx, over := ddb.While(caller, h)
	for range 100 {
		below, cancel := context.WithCancel(context.WithValue(ctx, name{}, 1))
		defer cancel()
		context.AfterFunc(below, func() {})
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, and %d before", n, before)
	}
	if h.asked != 1 {
		t.Errorf("%d contexts of what is held, want one for all", h.asked)
	}
	over()
	h.end(errLost)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("cause %v after the end of the call", cause)
	}
}

// A context with grace ends that much after its caller, whenever somebody waits for it.
func TestGraceBeginsWhenTheCallerLeaves(t *testing.T) {
	for waits, wait := range map[string]func(context.Context){
		"itself": func(ctx context.Context) { <-ctx.Done() },
		"a child": func(ctx context.Context) {
			child, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-child.Done()
		},
	} {
		for _, left := range []time.Duration{0, time.Second} {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := ddb.WithGrace(callerWhoLeaves(t, left), time.Minute)
				defer end()
				if context.Cause(ctx) != nil || ctx.Err() != nil {
					t.Fatalf("it has ended: %v", context.Cause(ctx))
				}
				began := time.Now()
				wait(ctx)
				if took := time.Since(began); took != left+time.Minute {
					t.Errorf("%s, left after %v: %v", waits, left, took)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, errLeft) {
					t.Errorf("%s, left after %v: cause %v", waits, left, cause)
				}
			})
		}
	}
}

// silent is a client whose service never answers.
type silent struct{ ddb.Client }

func (silent) UpdateItem(ctx context.Context, _ *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A request whose answer matters goes on for a moment after its caller has left, and no
// longer; an attempt lasts as long as it may, whoever waits.
func TestAnAttemptEndsAfterItsCallersGrace(t *testing.T) {
	for _, c := range []struct {
		timeout, left, want time.Duration
		awaits              bool
	}{
		{10 * time.Second, 2 * time.Second, 2*time.Second + ddb.Settle, true},
		{10 * time.Second, 2 * time.Second, 2 * time.Second, false},
		{time.Second, time.Hour, time.Second, true},
		{time.Second, time.Hour, time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &ddb.Table{Name: "t", Timeout: c.timeout, Classify: asIs, Client: silent{}}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			time.AfterFunc(c.left, func() { cancel(errLeft) })
			began := time.Now()
			res := s.Update(ctx, (&bench{table: "t"}).add("p"), ddb.Options{AwaitAnswer: c.awaits, Once: true, Single: true})
			if took := time.Since(began); took != c.want {
				t.Errorf("%+v: %v", c, took)
			}
			if left := c.left < time.Hour; res.Outcome != ddb.Unknown || errors.Is(res.Err, errLeft) != left || errors.Is(res.Err, context.Canceled) != left {
				t.Errorf("%+v: outcome %v, %v", c, res.Outcome, res.Err)
			}
		})
	}
}

// callerWhoLeaves is the context of a caller who leaves after a while, or has left.
func callerWhoLeaves(t *testing.T, after time.Duration) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	if after == 0 {
		cancel(errLeft)
	} else {
		time.AfterFunc(after, func() { cancel(errLeft) })
	}
	return ctx
}
