package coalescing_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

func TestCombinedChangesAreLikeChangesInARow(t *testing.T) {
	fixture.EachCombining(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		ctx := t.Context()
		const callers = 20
		results := make([]fixture.Account, callers)
		c := fixture.CallersOn(t, r, fixture.Account{})
		w.Count.Reset()
		for i := range callers {
			c.Done.Go(func() {
				results[i] = rig.Must(r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error {
					a.Balance++
					a.Ops = append(a.Ops, fmt.Sprint(i))
					return nil
				}))(t)
			})
		}
		c.Gathered(t, callers)
		c.Done.Wait()
		if n := w.Count.Total(); n > 3 {
			t.Errorf("%d requests for %d changes: %v", n, callers, w.Count.Counts())
		}
		// Everyone has the item as it was after its own change, and a version of its own.
		slices.SortFunc(results, func(a, b fixture.Account) int { return int(a.Balance - b.Balance) })
		for i, got := range results {
			if got.Balance != int64(i+1) || got.Version != int64(i+2) || len(got.Ops) != i+1 {
				t.Errorf("result %d: balance %d, version %d, %d operations", i, got.Balance, got.Version, len(got.Ops))
			}
		}
		stored := rig.Must(r.Get(ctx, fixture.HotKey))(t)
		if stored.Balance != callers || stored.Version != callers+1 || len(stored.Ops) != callers {
			t.Errorf("stored %+v", stored)
		}
	})
}

func TestNobodyIsHarmedByOthersInABatch(t *testing.T) {
	fixture.EachCombining(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		ctx := t.Context()
		c := fixture.CallersOn(t, r, fixture.Account{Tags: []string{"a", "b"}})
		add := func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }
		mine := errors.New("no funds")
		leaving, leave := context.WithCancelCause(ctx)
		var left atomic.Bool
		odd := []func(){
			func() {
				_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error {
					a.Balance, a.Tags[0] = 1000, "spoiled" // also what the slice shares
					return mine
				})
				rig.Is(t, err, mine)
			},
			func() {
				defer func() {
					if p := recover(); p != "boom" {
						t.Errorf("recovered %v, want the change's own panic", p)
					}
				}()
				_, _ = r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance = 2000; panic("boom") })
			},
			func() {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance = 3000; runtime.Goexit(); return nil })
					t.Error("Update returned to a goroutine that has ended")
				}()
				<-ended
			},
			func() {
				_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Seq = 9; return nil })
				rig.Is(t, err, repo.ErrFixed)
			},
			func() {
				_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Note = string(make([]byte, 500_000)); return nil })
				rig.Is(t, err, repo.ErrTooLarge)
			},
			func() {
				_, err := r.Update(leaving, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { left.Store(true); a.Balance = 4000; return nil })
				rig.Is(t, err, context.Canceled)
			},
		}
		const good = 12
		for i := range good {
			if i < len(odd) {
				c.Done.Go(odd[i])
			}
			c.Done.Go(func() { rig.Must(r.Update(ctx, fixture.HotKey, add))(t) })
		}
		fixture.AwaitCallers(t, good+len(odd))
		leave(errors.New("going home"))
		c.Gathered(t, good+len(odd)-1)
		c.Done.Wait()
		got := rig.Must(r.Get(ctx, fixture.HotKey))(t)
		if got.Balance != good || !slices.Equal(got.Tags, []string{"a", "b"}) || got.Note != "" || left.Load() {
			t.Errorf("stored %+v, want the %d good changes and nothing else", got, good)
		}
	})
}

func TestRemovalAmongCombinedChanges(t *testing.T) {
	fixture.EachCombining(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		ctx := t.Context()
		c := fixture.CallersOn(t, r, fixture.Account{})
		const callers = 8
		var counted atomic.Int64
		for range callers {
			c.Done.Go(func() {
				_, err := r.Upsert(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; a.At++; return nil })
				if err != nil {
					t.Error(err)
				}
				counted.Add(1)
			})
		}
		c.Done.Go(func() {
			if err := r.Delete(ctx, fixture.HotKey); err != nil {
				t.Error(err)
			}
		})
		c.Gathered(t, callers+1)
		c.Done.Wait()
		// Whenever the removal came: what was added after it is there.
		got, err := r.Get(ctx, fixture.HotKey)
		if err != nil && !errors.Is(err, repo.ErrNotFound) || got.Balance > callers || counted.Load() != callers {
			t.Errorf("stored %+v, %v after %d changes", got, err, counted.Load())
		}
	})
}

// Changes that cancel each other out were acknowledged with versions of their
// own: the version moves even where the item is as it was.
func TestChangesThatCancelOut(t *testing.T) {
	fixture.EachCombining(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		ctx := t.Context()
		c := fixture.CallersOn(t, r, fixture.Account{})
		var highest atomic.Int64
		for i := range 4 {
			by := int64(i%2*2 - 1)
			c.Done.Go(func() {
				got := rig.Must(r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance += by; return nil }))(t)
				for old := highest.Load(); got.Version > old && !highest.CompareAndSwap(old, got.Version); old = highest.Load() {
				}
			})
		}
		c.Gathered(t, 4)
		c.Done.Wait()
		if got := rig.Must(r.Get(ctx, fixture.HotKey))(t); got.Balance != 0 || got.Version != 5 || highest.Load() != 5 {
			t.Errorf("stored %+v, the highest version told is %d: want 5", got, highest.Load())
		}
	})
}

// An upsert whose changes all fail made the item all the same.
func TestFailedUpsertsMakeNothing(t *testing.T) {
	fixture.EachCombining(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		ctx := t.Context()
		mine := errors.New("no")
		func() {
			defer func() { _ = recover() }()
			_, _ = r.Upsert(ctx, fixture.HotKey, func(context.Context, *fixture.Account) error { panic("boom") })
		}()
		for exits := range 3 { // which of three callers ends its goroutine
			upsert := func(c *fixture.Callers, i int) {
				_, err := r.Upsert(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error {
					c.First()
					if a.Balance = 1; i == exits {
						runtime.Goexit()
					}
					return mine
				})
				rig.Is(t, err, mine)
			}
			c := fixture.CallersBehind(func(c *fixture.Callers) { upsert(c, 0) })
			for i := range 2 {
				c.Done.Go(func() { upsert(c, i+1) })
			}
			c.Gathered(t, 2)
			c.Done.Wait()
		}
		if _, err := r.Get(ctx, fixture.HotKey); !errors.Is(err, repo.ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound: nobody made the item", err)
		}
	})
}
