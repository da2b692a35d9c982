package nested_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// errTorn is what a closure returns that has seen what was never there.
var errTorn = errors.New("torn")

// moves is one of others that changes two items between two reads.
func (w *world) moves(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		rig.Must(w.optimistic.Update(t.Context(), key(id), more))(t)
	}
}

// An error that comes from what was never there at one moment is none: also where the
// check cannot be made.
func TestAnErrorOfATornRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ends := map[string]struct {
		fails  bool // the reads at the end
		cancel bool // before the closure returns
		want   error
	}{
		"checked": {}, "the check fails": {fails: true}, "the context ends": {cancel: true, want: context.Canceled},
	}
	for end, e := range ends {
		for first := range w.views(nil) {
			for second := range w.views(nil) {
				if locks(first) {
					continue // nobody writes it then
				}
				name := fmt.Sprintf("%s, %s, %s", end, first, second)
				x, y := w.make(t, "x "+name), w.make(t, "y "+name)
				ctx, cancel := context.WithCancel(t.Context())
				runs := 0
				err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					views := w.views(tx)
					a, err := views[first].Get(ctx, key(x))
					if err != nil {
						return err
					}
					if runs++; runs == 1 {
						w.moves(t, x, y)
					}
					b, err := views[second].Get(ctx, key(y))
					if err != nil {
						return err
					}
					if e.fails {
						w.Faults(unreadable)
					}
					if e.cancel {
						cancel()
					}
					if a.N != b.N {
						return errTorn
					}
					return nil
				})
				cancel()
				w.Faults(nil)
				if errors.Is(err, errTorn) || (err == nil) != (end == "checked") {
					t.Errorf("%s: %v", name, err)
				}
				if e.want != nil {
					rig.Is(t, err, e.want)
				}
				if repo.VerdictOf(err) != repo.NotWritten && err != nil {
					t.Errorf("%s: %v", name, repo.VerdictOf(err))
				}
			}
		}
	}
}

// unreadable lets no read through.
func unreadable(op string, _ int, _ []byte) fault.Kind {
	if op == "GetItem" || op == "TransactGetItems" {
		return fault.Refuse
	}
	return fault.None
}

func locks(strategy string) bool { return strategy == "pessimistic" || strategy == "pessimistic.Once" }

// An item that was read before an Apply is one of those that must be as they were read.
func TestAnErrorOfATornReadBesideAnApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, y, runs := w.make(t, "x"), w.make(t, "y"), 0
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		view := w.optimistic.In(tx)
		a, err := view.Get(ctx, key(x))
		if err == nil {
			err = view.Apply(ctx, key(x), plus)
		}
		if err != nil {
			return err
		}
		if runs++; runs == 1 {
			w.moves(t, x, y)
		}
		if b, err := view.Get(ctx, key(y)); err != nil || a.N != b.N {
			return errors.Join(err, errTorn)
		}
		return nil
	}))
	w.has(t, x, 12)
}

// A lock that an operator has broken has kept nothing as it was read.
func TestAnErrorUnderABrokenLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, cancels := range []bool{false, true} {
		x, y := w.make(t, fmt.Sprint("x", cancels)), w.make(t, fmt.Sprint("y", cancels))
		ctx, cancel := context.WithCancel(t.Context())
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			a, err := w.locking.In(tx).Get(ctx, key(x))
			if err != nil {
				return err
			}
			held := rig.Must(w.locking.Table().Inspect(t.Context(), key(x)))(t)
			rig.Is(t, w.locking.Locker().Break(t.Context(), key(x), held.Token))
			w.moves(t, x, y)
			b, err := w.locking.In(tx).Get(ctx, key(y))
			if err != nil {
				return err
			}
			if cancels {
				cancel()
			}
			if a.N != b.N {
				return errTorn
			}
			return nil
		})
		cancel()
		if errors.Is(err, errTorn) {
			t.Errorf("%v", err)
		}
		rig.Is(t, err, repo.ErrLockLost)
		if failed := (*txn.Error)(nil); !errors.As(err, &failed) || failed.Failed[0].Key != key(x) {
			t.Errorf("%v does not name its item", err)
		}
	}
}

// What was read at one moment in any case is believed, whatever the context.
func TestAnErrorOfWhatWasThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, y := w.make(t, "x"), w.make(t, "y")
	mine := errors.New("mine")
	for name, touch := range map[string]func(ctx context.Context, tx *txn.Tx) error{
		"one item": func(ctx context.Context, tx *txn.Tx) error {
			_, err := w.optimistic.In(tx).Get(ctx, key(x))
			return err
		},
		"at once": func(ctx context.Context, tx *txn.Tx) error {
			err := tx.Prefetch(ctx, w.optimistic.Keys(key(x), key(y)))
			for _, id := range []string{x, y} {
				_, failed := w.optimistic.In(tx).Get(ctx, key(id))
				err = errors.Join(err, failed)
			}
			return err
		},
		"locked": func(ctx context.Context, tx *txn.Tx) error {
			_, err := w.locking.In(tx).Get(ctx, key(x))
			_, failed := w.locking.In(tx).Get(ctx, key(y))
			return errors.Join(err, failed)
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if err := touch(ctx, tx); err != nil {
				return err
			}
			cancel()
			return mine
		})
		if rig.Is(t, err, mine); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A panic that comes from what was never there at one moment is none either; one that comes
// from what was there is its caller's.
func TestAPanicOfATornRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for first := range w.views(nil) {
		if locks(first) {
			continue // nobody writes it then
		}
		for _, moved := range []bool{true, false} {
			name := fmt.Sprint(first, moved)
			x, y := w.make(t, "x "+name), w.make(t, "y "+name)
			runs := 0
			said := func() (said any) {
				defer func() { said = recover() }()
				return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					r := w.views(tx)[first]
					a, err := r.Get(ctx, key(x))
					if err != nil {
						return err
					}
					if runs++; runs == 1 && moved {
						w.moves(t, x, y)
					}
					b, err := r.Get(ctx, key(y))
					if err == nil && (a.N != b.N || !moved) {
						panic(errTorn)
					}
					return err
				})
			}()
			if moved && (said != nil || runs != 2) || !moved && (said != errTorn || runs != 1) { //nolint:errorlint // the very value
				t.Errorf("%s: %v after %d runs", name, said, runs)
			}
		}
	}
}
