package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// events is the repository of events, and two of its items at time 5.
func (w *world) events(t *testing.T) (r *nolock.Repository[event], x, y string) {
	t.Helper()
	r = rig.Must(nolock.New(table[event](t, w.Rig, "-n", false), nolock.Config{}))(t)
	x, y = w.id("x"), w.id("y")
	for _, id := range []string{x, y} {
		rig.Is(t, r.Put(t.Context(), event{ID: id, N: 10, At: 5}))
	}
	w.Count.Reset()
	return r, x, y
}

func set(n int) expression.UpdateBuilder {
	return expression.Set(expression.Name("n"), expression.Value(n))
}

// Events of several items are one request, which reads nothing.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	r, x, y := w.events(t)
	z := w.id("z")
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		view := r.In(tx)
		rig.Is(t, view.Put(ctx, event{ID: x, N: 11, At: 6}))
		rig.Is(t, view.Apply(ctx, key(z), int64(6), set(3)))
		return view.DeleteAt(ctx, key(y), int64(6))
	}))
	rig.Equal(t, w.Count.Total(), 1, "%v", w.Count.Counts())
	s := w.stores["nolock"]
	has(t, s, x, 11)
	has(t, s, y, -1)
	has(t, s, z, 3)
	rig.Is(t, r.Put(t.Context(), event{ID: y, N: 1, At: 6})) // a duplicate of the deletion
	has(t, s, y, -1)
	rig.Is(t, r.Put(t.Context(), event{ID: y, N: 1, At: 7}))
	has(t, s, y, 1)
}

// A stale event fails the whole, a duplicate changes nothing and the rest goes on.
func TestStaleAndDuplicate(t *testing.T) {
	for _, c := range []struct {
		name  string
		event func(ctx context.Context, view *nolock.View[event], id string, at int64) error
	}{
		{"Put", func(ctx context.Context, view *nolock.View[event], id string, at int64) error {
			return view.Put(ctx, event{ID: id, N: 77, At: at})
		}},
		{"Apply", func(ctx context.Context, view *nolock.View[event], id string, at int64) error {
			return view.Apply(ctx, key(id), at, set(77))
		}},
		{"DeleteAt", func(ctx context.Context, view *nolock.View[event], id string, at int64) error {
			return view.DeleteAt(ctx, key(id), at)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, x, y := w.events(t)
			s := w.stores["nolock"]
			run := func(at int64, read bool) error {
				return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					if read {
						if _, err := r.In(tx).Get(ctx, key(y)); err != nil {
							return err
						}
					}
					if err := c.event(ctx, r.In(tx), y, at); err != nil {
						return err
					}
					return s.in(tx).add(ctx, x, 1)
				})
			}
			for _, read := range []bool{false, true} {
				rig.Is(t, run(4, read), repo.ErrStale)
				has(t, s, x, 10)
				has(t, s, y, 10)
			}
			rig.Is(t, run(5, false))
			rig.Is(t, run(5, true))
			has(t, s, x, 12)
			has(t, s, y, 10)
			rig.Is(t, run(6, true))
			want := 77
			if c.name == "DeleteAt" {
				want = -1
			}
			has(t, s, y, want)
			if c.name == "Apply" { // nothing follows it
				return
			}
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { // an older one behind it, in its transaction
				rig.Is(t, c.event(ctx, r.In(tx), y, 9))
				return r.In(tx).Put(ctx, event{ID: y, N: 8, At: 8})
			}), repo.ErrStale)
			has(t, s, y, want)
		})
	}
}

// What was put or deleted without a read is seen, by the one read that it then
// takes. What Apply makes of an item only DynamoDB knows.
func TestOwnEvents(t *testing.T) {
	w := newWorld(t)
	r, x, y := w.events(t)
	s := eventStore(r)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		view, s := r.In(tx), s.in(tx)
		rig.Is(t, view.Put(ctx, event{ID: x, N: 11, At: 6}))
		has(t, inside{s, ctx}, x, 11)
		rig.Is(t, s.add(ctx, x, 1))
		rig.Is(t, view.DeleteAt(ctx, key(y), int64(6)))
		has(t, inside{s, ctx}, y, -1)
		rig.Is(t, s.create(ctx, y, 1), repo.ErrStale) // at 1
		return view.Put(ctx, event{ID: y, N: 3, At: 7})
	}))
	has(t, s, x, 12)
	has(t, s, y, 3)
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		rig.Is(t, r.In(tx).Apply(ctx, key(x), int64(8), set(1)))
		_, err := r.In(tx).Get(ctx, key(x))
		rig.Is(t, err, repo.ErrConfig)
		return err
	})
	rig.Is(t, err, repo.ErrConfig)
	has(t, s, x, 12)
}

// A write that has not read its item, and does not fit, is refused by its own call: not by one
// behind it, whose error the closure may pass over.
func TestAStaleWriteIsNotLostInARead(t *testing.T) {
	w := newWorld(t)
	r, x, y := w.events(t)
	versions := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	old := rig.Must(versions.Create(t.Context(), counted{ID: x}))(t)
	rig.Is(t, w.stores["optimistic"].add(t.Context(), x, 10))
	for want, writeAndRead := range map[error]func(context.Context, *txn.Tx) error{
		repo.ErrStale: func(ctx context.Context, tx *txn.Tx) error {
			err := r.In(tx).Put(ctx, event{ID: x, N: 1, At: 4})
			_, _ = r.In(tx).Get(ctx, key(x))
			return err
		},
		repo.ErrConflict: func(ctx context.Context, tx *txn.Tx) error {
			_, err := versions.In(tx).Save(ctx, old)
			_, _ = versions.In(tx).Get(ctx, key(x))
			return err
		},
	} {
		runs := 0
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			runs++
			return errors.Join(writeAndRead(ctx, tx), eventStore(r).in(tx).add(ctx, y, 1))
		}), want)
		rig.Equal(t, runs, 2, "runs")
		has(t, w.stores["nolock"], y, 10)
	}
}

// inside reads with the context of a closure.
type inside struct {
	store
	ctx context.Context //nolint:containedctx // of one closure
}

func (i inside) get(_ context.Context, id string) (int, error) { return i.store.get(i.ctx, id) }

// An item that its tombstone hides comes back with a newer event only, without what
// the tombstone has kept.
func TestTombstones(t *testing.T) {
	w := newWorld(t)
	r, x, y := w.events(t)
	s := w.stores["nolock"]
	rig.Is(t, r.DeleteAt(t.Context(), key(x), int64(9)))
	both := func(at int64) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if _, err := r.In(tx).Create(ctx, event{ID: x, N: 1, At: at}); err != nil {
				return err
			}
			return s.in(tx).add(ctx, y, 1)
		})
	}
	rig.Is(t, both(9), repo.ErrStale)
	has(t, s, y, 10)
	rig.Is(t, both(10))
	has(t, s, x, 1)
	has(t, s, y, 11)
}
