package coalescing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// A warm item saves the read as long as nobody else writes; others' writes cost
// a refused write and nothing more, and what a change says is always true.
func TestWarmItems(t *testing.T) {
	w := fixture.New(t)
	ctx := t.Context()
	warm := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{Warm: 2}))(t)
	other := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
	rig.Must(warm.Create(ctx, fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
	add := func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }
	cost := func(change func(context.Context, *fixture.Account) error) (reads, writes int) {
		w.Count.Reset()
		_, _ = warm.Update(ctx, fixture.HotKey, change)
		return w.Count.Count("GetItem"), w.Count.Count("UpdateItem")
	}
	expect := func(what string, reads, writes int, change func(context.Context, *fixture.Account) error) {
		t.Helper()
		began := time.Now()
		r, wr := cost(change)
		if late := time.Since(began) > 8*time.Millisecond; late && r > reads {
			r = reads // looks at what became of the write, as others write there
		}
		if r != reads || wr != writes {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", what, r, wr, reads, writes)
		}
	}
	expect("first", 1, 1, add)
	expect("second, which proves the copy", 1, 1, add)
	expect("warm", 0, 1, add)
	expect("still warm", 0, 1, add)

	rig.Must(other.Update(ctx, fixture.HotKey, add))(t)
	expect("another wrote", 0, 2, add)
	expect("not proved any more", 1, 1, add)
	expect("warm again", 0, 1, add)

	// An error, and that nothing is to be changed, are said of a fresh item only.
	rig.Must(other.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance = 100; return nil }))(t)
	poor := errors.New("no funds")
	_, err := warm.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error {
		if a.Balance < 100 {
			return poor
		}
		a.Balance -= 100
		return nil
	})
	if err != nil {
		t.Errorf("refused on a stale copy: %v", err)
	}
	rig.Must(other.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance = 7; return nil }))(t)
	same := rig.Must(warm.Update(ctx, fixture.HotKey, func(context.Context, *fixture.Account) error { return nil }))(t)
	rig.Equal(t, same.Balance, 7, "an unchanged stale copy was returned: %+v", same)
	if err := other.Delete(ctx, fixture.HotKey); err != nil {
		t.Fatal(err)
	}
	_, err = warm.Update(ctx, fixture.HotKey, add)
	rig.Is(t, err, repo.ErrNotFound)

	// No more than Warm items are kept.
	for i := range 3 {
		rig.Must(warm.Create(ctx, fixture.Account{ID: "many", Seq: i, At: 1}))(t)
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

// What others wrote before the call counted as a conflict of the call, where it
// began with what was kept.
func TestAStaleWarmItemIsNoConflict(t *testing.T) {
	w := fixture.New(t)
	ctx := t.Context()
	warm := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{Warm: 2, Attempts: 1}))(t)
	other := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
	rig.Must(warm.Create(ctx, fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	for range 3 {
		rig.Must(warm.Update(ctx, fixture.Key, fixture.AddOne))(t)
	}
	rig.Must(other.Update(ctx, fixture.Key, fixture.AddOne))(t)
	if got := rig.Must(warm.Update(ctx, fixture.Key, fixture.AddOne))(t); got.Balance != 5 {
		t.Errorf("%+v, want 5 changes", got)
	}
}
