package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Many callers of one process on one item: one voice.

var hotKey = repo.Key{Partition: "hot", Sort: 1}

// combining are the modes that write the changes of several callers at once.
func combining() []strategy {
	return slices.DeleteFunc(strategies(), func(s strategy) bool { return !s.combines })
}

func TestCombinedChangesAreLikeChangesInARow(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.Client)
			ctx := t.Context()
			const callers = 20
			results := make([]Account, callers)
			c := crowdOn(t, r, Account{})
			w.Count.Reset()
			for i := range callers {
				c.done.Go(func() {
					results[i] = rig.Must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error {
						a.Balance++
						a.Ops = append(a.Ops, fmt.Sprint(i))
						return nil
					}))(t)
				})
			}
			c.standing(t, callers)
			c.done.Wait()
			if n := w.Count.Total(); n > 3 {
				t.Errorf("%d requests for %d changes: %v", n, callers, w.Count.Counts())
			}
			// Everyone has the item as it was after its own change, and a version of its own.
			slices.SortFunc(results, func(a, b Account) int { return int(a.Balance - b.Balance) })
			for i, got := range results {
				if got.Balance != int64(i+1) || got.Version != int64(i+2) || len(got.Ops) != i+1 {
					t.Errorf("result %d: balance %d, version %d, %d operations", i, got.Balance, got.Version, len(got.Ops))
				}
			}
			stored := rig.Must(r.Get(ctx, hotKey))(t)
			if stored.Balance != callers || stored.Version != callers+1 || len(stored.Ops) != callers {
				t.Errorf("stored %+v", stored)
			}
		})
	}
}

func TestNobodyIsHarmedByOthersInABatch(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.Client)
			ctx := t.Context()
			c := crowdOn(t, r, Account{Tags: []string{"a", "b"}})
			add := func(_ context.Context, a *Account) error { a.Balance++; return nil }
			mine := errors.New("no funds")
			leaving, leave := context.WithCancelCause(ctx)
			var left atomic.Bool
			odd := []func(){
				func() {
					_, err := r.Update(ctx, hotKey, func(_ context.Context, a *Account) error {
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
					_, _ = r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance = 2000; panic("boom") })
				},
				func() {
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						_, _ = r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance = 3000; runtime.Goexit(); return nil })
						t.Error("Update returned to a goroutine that has ended")
					}()
					<-ended
				},
				func() {
					_, err := r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Seq = 9; return nil })
					rig.Is(t, err, repo.ErrFixed)
				},
				func() {
					_, err := r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Note = string(make([]byte, 500_000)); return nil })
					rig.Is(t, err, repo.ErrTooLarge)
				},
				func() {
					_, err := r.Update(leaving, hotKey, func(_ context.Context, a *Account) error { left.Store(true); a.Balance = 4000; return nil })
					rig.Is(t, err, context.Canceled)
				},
			}
			const good = 12
			for i := range good {
				if i < len(odd) {
					c.done.Go(odd[i])
				}
				c.done.Go(func() { rig.Must(r.Update(ctx, hotKey, add))(t) })
			}
			inLine(t, good+len(odd))
			leave(errors.New("going home"))
			c.standing(t, good+len(odd)-1)
			c.done.Wait()
			got := rig.Must(r.Get(ctx, hotKey))(t)
			if got.Balance != good || !slices.Equal(got.Tags, []string{"a", "b"}) || got.Note != "" || left.Load() {
				t.Errorf("stored %+v, want the %d good changes and nothing else", got, good)
			}
		})
	}
}

func TestRemovalAmongCombinedChanges(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.Client)
			ctx := t.Context()
			c := crowdOn(t, r, Account{})
			const callers = 8
			var counted atomic.Int64
			for range callers {
				c.done.Go(func() {
					_, err := r.Upsert(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance++; a.At++; return nil })
					if err != nil {
						t.Error(err)
					}
					counted.Add(1)
				})
			}
			c.done.Go(func() {
				if err := r.Delete(ctx, hotKey); err != nil {
					t.Error(err)
				}
			})
			c.standing(t, callers+1)
			c.done.Wait()
			// Whenever the removal came: what was added after it is there.
			got, err := r.Get(ctx, hotKey)
			if err != nil && !errors.Is(err, repo.ErrNotFound) || got.Balance > callers || counted.Load() != callers {
				t.Errorf("stored %+v, %v after %d changes", got, err, counted.Load())
			}
		})
	}
}

// What one change costs when many want the item, by request.
func TestRequestsOfAHotItem(t *testing.T) {
	const callers, each = 32, 10
	for name, want := range map[string]float64{ // requests per change, at most
		"nolock": 1000, "optimistic": 1.1, "pessimistic": 1.2, "optimistic, warm": 1.1,
		"pessimistic, combining": 0.9, "optimistic, warm, combining": 0.9,
	} {
		i := slices.IndexFunc(strategies(), func(s strategy) bool { return s.name == name })
		s := strategies()[i]
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.Client)
			rig.Must(r.Create(t.Context(), Account{ID: "hot", Seq: 1, At: 1}))(t)
			w.Count.Reset()
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					for range each {
						rig.Must(r.Update(t.Context(), hotKey, func(_ context.Context, a *Account) error { a.Balance++; a.At++; return nil }))(t)
					}
				})
			}
			done.Wait()
			if per := float64(w.Count.Total()) / (callers * each); per > want {
				t.Errorf("%.2f requests per change, want at most %.2f: %v", per, want, w.Count.Counts())
			}
			if got := rig.Must(r.Get(t.Context(), hotKey))(t); got.Balance != callers*each {
				t.Errorf("balance %d, want %d", got.Balance, callers*each)
			}
		})
	}
}

// A warm item saves the read as long as nobody else writes; others' writes cost
// a refused write and nothing more, and what a change says is always true.
func TestWarmItems(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	warm := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{Warm: 2}))(t)
	other := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t)
	rig.Must(warm.Create(ctx, Account{ID: "hot", Seq: 1, At: 1}))(t)
	add := func(_ context.Context, a *Account) error { a.Balance++; return nil }
	cost := func(change func(context.Context, *Account) error) (reads, writes int) {
		w.Count.Reset()
		_, _ = warm.Update(ctx, hotKey, change)
		return w.Count.Count("GetItem"), w.Count.Count("UpdateItem")
	}
	expect := func(what string, reads, writes int, change func(context.Context, *Account) error) {
		t.Helper()
		if r, wr := cost(change); r != reads || wr != writes {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", what, r, wr, reads, writes)
		}
	}
	expect("first", 1, 1, add)
	expect("second, which proves the copy", 1, 1, add)
	expect("warm", 0, 1, add)
	expect("still warm", 0, 1, add)

	rig.Must(other.Update(ctx, hotKey, add))(t)
	expect("another wrote", 0, 2, add)
	expect("not proved any more", 1, 1, add)
	expect("warm again", 0, 1, add)

	// An error, and that nothing is to be changed, are said of a fresh item only.
	rig.Must(other.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance = 100; return nil }))(t)
	poor := errors.New("no funds")
	_, err := warm.Update(ctx, hotKey, func(_ context.Context, a *Account) error {
		if a.Balance < 100 {
			return poor
		}
		a.Balance -= 100
		return nil
	})
	if err != nil {
		t.Errorf("refused on a stale copy: %v", err)
	}
	rig.Must(other.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance = 7; return nil }))(t)
	same := rig.Must(warm.Update(ctx, hotKey, func(context.Context, *Account) error { return nil }))(t)
	if same.Balance != 7 {
		t.Errorf("an unchanged stale copy was returned: %+v", same)
	}
	if err := other.Delete(ctx, hotKey); err != nil {
		t.Fatal(err)
	}
	_, err = warm.Update(ctx, hotKey, add)
	rig.Is(t, err, repo.ErrNotFound)

	// No more than Warm items are kept.
	for i := range 3 {
		rig.Must(warm.Create(ctx, Account{ID: "many", Seq: i, At: 1}))(t)
		for range 3 {
			rig.Must(warm.Update(ctx, repo.Key{Partition: "many", Sort: i}, add))(t)
		}
	}
	w.Count.Reset()
	for _, i := range []int{0, 1, 2} {
		rig.Must(warm.Update(ctx, repo.Key{Partition: "many", Sort: i}, add))(t)
	}
	if n := w.Count.Count("GetItem"); n == 0 || n > 3 {
		t.Errorf("%d reads: want one at least for what did not fit", n)
	}
}

// An answer that is lost in the middle of a chain of callers: whoever comes
// next finds the lock that was passed on to it.
func TestALostHandOnIsFound(t *testing.T) {
	for _, kind := range []fault.Kind{fault.LoseResponse, fault.Error500After, fault.DropRequest, fault.Resend} {
		t.Run(kind.String(), func(t *testing.T) {
			w := newWorld(t)
			ctx := t.Context()
			var n atomic.Int64
			client := rig.Client(func(o *dynamodb.Options) {
				o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: func(op string, _ int, _ []byte) fault.Kind {
					if op == "UpdateItem" && n.Add(1)%3 == 0 {
						return kind
					}
					return fault.None
				}})
			})
			r := rig.Must(pessimistic.New(w.repoTable(t, client), pessimistic.Config{}))(t)
			rig.Must(r.Create(ctx, Account{ID: "hot", Seq: 1, At: 1}))(t)
			var done sync.WaitGroup
			for range 8 {
				done.Go(func() {
					for range 5 {
						rig.Must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance++; return nil }))(t)
					}
				})
			}
			done.Wait()
			if got := rig.Must(r.Get(ctx, hotKey))(t); got.Balance != 40 {
				t.Errorf("balance %d, want 40", got.Balance)
			}
			if lock := rig.Must(w.repoTable(t, w.Client).Inspect(ctx, hotKey))(t); lock.Held {
				t.Errorf("the item is still locked: %+v", lock)
			}
		})
	}
}

// A change that takes its time delays the others, and no more than that.
func TestASlowChangeIsOvertaken(t *testing.T) {
	defer func(patience time.Duration) { local.Patience = patience }(local.Patience)
	local.Patience = 250 * time.Millisecond
	w := newWorld(t)
	ctx := t.Context()
	r := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t)
	rig.Must(r.Create(ctx, Account{ID: "hot", Seq: 1, At: 1}))(t)
	c := crowdBehind(func(c *crowd) {
		rig.Must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance += 10; c.first(); return nil }))(t)
	})
	got := rig.Must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance++; return nil }))(t)
	if got.Balance != 1 {
		t.Errorf("balance %d: the slow change was waited for", got.Balance)
	}
	close(c.open)
	c.done.Wait()
	if got := rig.Must(r.Get(ctx, hotKey))(t); got.Balance != 11 {
		t.Errorf("balance %d, want 11", got.Balance)
	}
}
