package nested_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/txn"
)

// together runs functions in goroutines of one closure.
func together(ctx context.Context, each ...func(context.Context) error) error {
	errs := make([]error, len(each))
	var all sync.WaitGroup
	for i, f := range each {
		all.Go(func() { errs[i] = f(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Goroutines of one closure that change one item follow each other.
func TestGoroutinesAtOneItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name := range w.views(nil) {
		if name == "optimistic.Once" || name == "pessimistic.Once" {
			continue // one change under its id
		}
		x, y := w.make(t, "x "+name), w.make(t, "y "+name)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			view, entered := w.views(tx)[name], make(chan struct{})
			var coming sync.WaitGroup
			each := []func(context.Context) error{func(ctx context.Context) error {
				_, err := view.Update(ctx, key(x), func(ctx context.Context, item *thing) error {
					close(entered)
					coming.Wait()
					return more(ctx, item)
				})
				return err
			}}
			for i := range 8 {
				coming.Add(1)
				each = append(each, func(ctx context.Context) error {
					<-entered
					coming.Done()
					_, err := view.Update(ctx, key(x), more)
					if err == nil && i%2 == 0 {
						_, err = view.Get(ctx, key(y))
					}
					return err
				})
			}
			return together(ctx, each...)
		})
		if rig.Is(t, err); ctx.Err() != nil {
			t.Errorf("%s: it stood still", name)
		}
		cancel()
		w.has(t, x, 19)
	}
}

// A read beforehand beside a change that reads what it reads does not stand still.
func TestPrefetchBesideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name := range w.views(nil) {
		for round := range 20 {
			x, y := w.make(t, fmt.Sprint("x ", name, round)), w.make(t, fmt.Sprint("y ", name, round))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				view, closure, entered := w.views(tx)[name], ctx, make(chan struct{})
				keys := w.optimistic.Keys(key(x), key(y))
				switch name {
				case "optimistic, fair":
					keys = w.fair.Keys(key(x), key(y))
				case "pessimistic", "pessimistic.Once":
					keys = w.locking.Keys(key(x), key(y))
				case "nolock":
					keys = w.events.Keys(key(x), key(y))
				}
				return together(ctx,
					func(ctx context.Context) error {
						_, err := view.Update(ctx, key(y), func(ctx context.Context, item *thing) error {
							close(entered)
							if round%2 == 0 {
								ctx = closure // whoever does not use the change's
							}
							if _, err := view.Get(ctx, key(x)); err != nil {
								return err
							}
							return more(ctx, item)
						})
						return err
					},
					func(ctx context.Context) error {
						if round%3 == 0 {
							<-entered
						}
						return tx.Prefetch(ctx, keys)
					})
			})
			if rig.Is(t, err); ctx.Err() != nil {
				t.Fatalf("%s: it stood still", name)
			}
			cancel()
			w.has(t, y, 11)
		}
	}
}

// Changes of two items that wait for each other are refused, and a change that waits for
// another one is not.
func TestChangesThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name := range w.views(nil) {
		x, y := w.make(t, "x "+name), w.make(t, "y "+name)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		mine := errors.New("mine")
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			view := w.views(tx)[name]
			var both sync.WaitGroup
			both.Add(2)
			cross := func(id, other string) func(context.Context) error {
				return func(ctx context.Context) error {
					_, err := view.Update(ctx, key(id), func(ctx context.Context, _ *thing) error {
						both.Done()
						both.Wait()
						_, err := view.Get(ctx, key(other))
						return err
					})
					return err
				}
			}
			refused(t, name, together(ctx, cross(x, y), cross(y, x)), "waits for this one")
			return mine
		})
		if rig.Is(t, err, mine); ctx.Err() != nil {
			t.Errorf("%s: it stood still", name)
		}
		cancel()
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			view, entered, going := w.views(tx)[name], make(chan struct{}), make(chan struct{})
			return together(ctx,
				func(ctx context.Context) error {
					_, err := view.Update(ctx, key(x), func(ctx context.Context, item *thing) error { close(entered); <-going; return more(ctx, item) })
					return err
				},
				func(outer context.Context) error {
					_, err := view.Update(outer, key(y), func(_ context.Context, item *thing) error {
						<-entered
						close(going)
						_, err := view.Get(outer, key(x)) // not the change's own context
						return errors.Join(err, more(outer, item))
					})
					return err
				})
		}))
		w.has(t, x, 11)
		w.has(t, y, 11)
	}
}

// A call inside a change of its own item is refused with whichever context.
func TestACallWithAnotherContextInsideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name := range w.views(nil) {
		x := w.make(t, "x "+name)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		rig.Is(t, txn.Run(ctx, func(closure context.Context, tx *txn.Tx) error {
			view := w.views(tx)[name]
			_, err := view.Update(closure, key(x), func(ctx context.Context, item *thing) error {
				for _, with := range []context.Context{ctx, closure, t.Context()} {
					_, err := view.Get(with, key(x))
					refused(t, name+" Get", err, "own item")
					refused(t, name+" Delete", view.Delete(with, key(x)), "own item")
					_, err = view.Update(with, key(x), more)
					refused(t, name+" Update", err, "own item")
					_, err = view.Create(with, thing{ID: x, At: 9})
					refused(t, name+" Create", err, "own item")
				}
				return more(ctx, item)
			})
			return err
		}))
		if ctx.Err() != nil {
			t.Errorf("%s: it waited", name)
		}
		cancel()
		w.has(t, x, 11)
	}
}
