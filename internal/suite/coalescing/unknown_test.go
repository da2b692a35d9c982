package coalescing_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// writesData reports whether a write carries a change of the balance.
func writesData(in *dynamodb.UpdateItemInput) bool {
	for _, name := range in.ExpressionAttributeNames {
		if name == "balance" {
			return true
		}
	}
	return false
}

// A client that ended the goroutine in which it was called, as a test's does by FailNow, left
// all callers whose changes it was to write without an answer.
func TestAClientThatEndsItsGoroutine(t *testing.T) {
	for _, s := range fixture.Combining() {
		t.Run(s.Name, func(t *testing.T) {
			w, h := fixture.NewWith(t, fixture.HotKey)
			var data atomic.Int64
			h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				if writesData(in) && data.Add(1) == 1 {
					runtime.Goexit()
				}
				return send()
			}
			r := s.Open(t, w, h)
			var written atomic.Int64
			change := func(c *fixture.Callers) {
				ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
				defer cancel()
				_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; c.First(); return nil })
				if err == nil {
					written.Add(1)
				} else if !errors.Is(err, repo.ErrOutcomeUnknown) || ctx.Err() != nil {
					t.Error(err)
				}
			}
			c := fixture.CallersBehind(change)
			for range 3 {
				c.Done.Go(func() { change(c) })
			}
			c.Gathered(t, 3)
			c.Done.Wait()
			change(c)
			if got := rig.Must(r.Get(t.Context(), fixture.HotKey))(t); got.Balance < 1 || got.Balance != written.Load() {
				t.Errorf("%d were told that they had written; stored %+v", written.Load(), got)
			}
		})
	}
}

// A batch that was applied, whose answer was lost, and whose repetition the
// service refused, ran again: every change was made twice.
func TestAnUnknownBatchDoesNotRunAgain(t *testing.T) {
	for _, s := range fixture.Combining() {
		t.Run(s.Name, func(t *testing.T) {
			w, h := fixture.NewWith(t, fixture.HotKey)
			var data atomic.Int64
			h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				if !writesData(in) {
					return send()
				}
				switch data.Add(1) {
				case 1:
					_, _ = send()
					return nil, rig.ErrNoAnswer
				case 2:
					return nil, &types.ItemCollectionSizeLimitExceededException{}
				}
				return send()
			}
			r := s.Open(t, w, h)
			const callers = 4
			change := func(c *fixture.Callers) {
				_, err := r.Update(t.Context(), fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; c.First(); return nil })
				if err != nil && !errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Error(err)
				}
			}
			c := fixture.CallersBehind(change)
			for range callers - 1 {
				c.Done.Go(func() { change(c) })
			}
			c.Gathered(t, callers-1)
			c.Done.Wait()
			if got := rig.Must(r.Get(t.Context(), fixture.HotKey))(t); got.Balance > callers {
				t.Errorf("balance %d after %d changes of 1", got.Balance, callers)
			}
		})
	}
}

// A part of a batch that nobody had written, and that waited to run again, was
// told "unknown" when its context ended, and only after seconds.
func TestAPartThatWasNeverWrittenIsNotUnknown(t *testing.T) {
	for _, s := range fixture.Combining() {
		t.Run(s.Name, func(t *testing.T) {
			w, h := fixture.NewWith(t, fixture.HotKey)
			r := s.Open(t, w, h)
			c := fixture.CallersBehind(func(c *fixture.Callers) {
				rig.Must(r.Update(t.Context(), fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; c.First(); return nil }))(t)
			})
			ctx, leave := context.WithCancel(t.Context())
			told := make(chan struct{})
			runs := 0
			c.Done.Go(func() {
				_, _ = r.Update(t.Context(), fixture.HotKey, func(context.Context, *fixture.Account) error {
					if runs++; runs == 2 { // alone, and the other one behind it
						leave()
						<-told
					}
					return repo.Remove
				})
			})
			fixture.AwaitCallers(t, 1)
			c.Done.Go(func() {
				defer close(told)
				_, err := r.Update(ctx, fixture.HotKey, func(context.Context, *fixture.Account) error { return repo.Remove })
				if errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Errorf("nothing of it was ever sent: %v", err)
				}
			})
			c.Gathered(t, 2)
			c.Done.Wait()
		})
	}
}
