package nested_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

func TestMain(m *testing.M) { rig.Main(m) }

// thing fits all strategies.
type thing struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

func key(id string) repo.Key { return repo.Key{Partition: id} }

// world has a table, and repositories of all kinds on it, each by a table of its own.
type world struct {
	*rig.Rig
	optimistic, fair, combining *optimistic.Repository[thing]
	locking, combined           *pessimistic.Repository[thing]
	events                      *nolock.Repository[thing]
}

func newWorld(t *testing.T) *world {
	w := &world{Rig: rig.New(t)}
	table := func() *repo.Table[thing] {
		return rig.Must(repo.NewTable[thing](w.Client, w.Table, repo.TableConfig{}))(t)
	}
	rig.Is(t, table().EnsureTable(t.Context()))
	w.open(t, table)
	return w
}

// open makes the repositories.
func (w *world) open(t *testing.T, table func() *repo.Table[thing]) {
	w.optimistic = rig.Must(optimistic.New(table(), optimistic.Config{}))(t)
	w.fair = rig.Must(optimistic.New(table(), optimistic.Config{Fair: true}))(t)
	w.combining = rig.Must(optimistic.New(table(), optimistic.Config{Combine: true}))(t)
	w.locking = rig.Must(pessimistic.New(table(), pessimistic.Config{}))(t)
	w.combined = rig.Must(pessimistic.New(table(), pessimistic.Config{Combine: true}))(t)
	w.events = rig.Must(nolock.New(table(), nolock.Config{}))(t)
}

// make makes an item, and returns its id.
func (w *world) make(t *testing.T, id string) string {
	t.Helper()
	rig.Must(w.optimistic.Create(t.Context(), thing{ID: id, N: 10, At: 1}))(t)
	return id
}

func (w *world) has(t *testing.T, id string, want int) {
	t.Helper()
	if got := rig.Must(w.optimistic.Get(t.Context(), key(id)))(t); got.N != want {
		t.Errorf("%s has %d, want %d", id, got.N, want)
	}
}

// change is a change of an item by one.
func more(_ context.Context, x *thing) error {
	x.N++
	x.At++
	return nil
}

// changer is what changes an item by a function.
type changer interface {
	Update(context.Context, repo.Key, func(context.Context, *thing) error) (thing, error)
	Upsert(context.Context, repo.Key, func(context.Context, *thing) error) (thing, error)
}

// changers are all of them.
func (w *world) changers() map[string]changer {
	return map[string]changer{
		"optimistic": w.optimistic, "optimistic, fair": w.fair, "optimistic, combining": w.combining, "optimistic.Once": w.optimistic.Once("o"),
		"pessimistic": w.locking, "pessimistic, combining": w.combined, "pessimistic.Once": w.locking.Once("p"),
		"lockedread": w.locking.Locker(), "lockedread.Once": w.locking.Locker().Once("l"),
		"nolock": w.events,
	}
}

// call is a call on an item.
type call = func(ctx context.Context, id string) error

// writes are all calls that write an item.
func (w *world) writes() map[string]call {
	calls := map[string]call{
		"optimistic.Save": func(ctx context.Context, id string) error {
			_, err := w.optimistic.Save(ctx, thing{ID: id, At: 2, Version: 1})
			return err
		},
		"optimistic.Remove": func(ctx context.Context, id string) error { return w.optimistic.Remove(ctx, thing{ID: id, Version: 1}) },
		"optimistic.Apply":  applies(w.optimistic.Apply), "optimistic.Once.Apply": applies(w.optimistic.Once("a").Apply),
		"pessimistic.Apply": applies(w.locking.Apply), "pessimistic.Once.Apply": applies(w.locking.Once("b").Apply),
		"nolock.Put":                 func(ctx context.Context, id string) error { return w.events.Put(ctx, thing{ID: id, At: 9}) },
		"nolock.DeleteAt":            func(ctx context.Context, id string) error { return w.events.DeleteAt(ctx, key(id), 9) },
		"nolock.Apply":               func(ctx context.Context, id string) error { return w.events.Apply(ctx, key(id), 9, plus) },
		"pessimistic.Acquire":        acquires(w.locking.Acquire),
		"pessimistic.TryAcquire":     acquires(w.locking.TryAcquire),
		"lockedread.AcquireOrCreate": acquires(w.locking.Locker().AcquireOrCreate),
	}
	for name, c := range w.changers() {
		calls[name+".Update"] = func(ctx context.Context, id string) error { _, err := c.Update(ctx, key(id), more); return err }
		calls[name+".Upsert"] = func(ctx context.Context, id string) error { _, err := c.Upsert(ctx, key(id), more); return err }
		if r, ok := c.(repo.Repository[thing]); ok {
			calls[name+".Create"] = func(ctx context.Context, id string) error { _, err := r.Create(ctx, thing{ID: id, At: 9}); return err }
			calls[name+".Delete"] = func(ctx context.Context, id string) error { return r.Delete(ctx, key(id)) }
		}
	}
	return calls
}

var plus = expression.Add(expression.Name("n"), expression.Value(1))

func applies(apply func(context.Context, repo.Key, expression.UpdateBuilder, ...expression.ConditionBuilder) (thing, error)) call {
	return func(ctx context.Context, id string) error { _, err := apply(ctx, key(id), plus); return err }
}

func acquires(acquire func(context.Context, repo.Key) (*lockedread.Held[thing], error)) call {
	return func(ctx context.Context, id string) error {
		h, err := acquire(ctx, key(id))
		if err == nil {
			return h.Release(ctx)
		}
		return err
	}
}

// views are all views of a transaction.
func (w *world) views(tx *txn.Tx) map[string]repo.Repository[thing] {
	return map[string]repo.Repository[thing]{
		"optimistic": w.optimistic.In(tx), "optimistic, fair": w.fair.In(tx), "optimistic.Once": w.optimistic.Once("io").In(tx),
		"pessimistic": w.locking.In(tx), "pessimistic.Once": w.locking.Once("ip").In(tx), "nolock": w.events.In(tx),
	}
}

// transactions are calls that touch an item in a transaction of their own.
func (w *world) transactions() map[string]call {
	calls := map[string]call{}
	for name := range w.views(nil) {
		in := func(do func(context.Context, repo.Repository[thing], string) error) call {
			return func(ctx context.Context, id string) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return do(ctx, w.views(tx)[name], id) })
			}
		}
		calls["txn "+name+" Update"] = in(func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Update(ctx, key(id), more)
			return err
		})
		calls["txn "+name+" Get"] = in(func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Get(ctx, key(id))
			return err
		})
		calls["txn "+name+" Create"] = in(func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Create(ctx, thing{ID: id, At: 9})
			return err
		})
		calls["txn "+name+" Delete"] = in(func(ctx context.Context, r repo.Repository[thing], id string) error { return r.Delete(ctx, key(id)) })
		calls["txn "+name+" Prefetch"] = func(ctx context.Context, id string) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return tx.Prefetch(ctx, w.keys(name, id)) })
		}
	}
	calls["txn optimistic Save"] = func(ctx context.Context, id string) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			_, err := w.optimistic.In(tx).Save(ctx, thing{ID: id, At: 9, Version: 1})
			return err
		})
	}
	calls["txn nolock Put"] = func(ctx context.Context, id string) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return w.events.In(tx).Put(ctx, thing{ID: id, At: 9}) })
	}
	return calls
}

// all are several sets of calls.
func all(sets ...map[string]call) map[string]call {
	calls := map[string]call{}
	for _, set := range sets {
		maps.Copy(calls, set)
	}
	return calls
}

// refused checks that a call is refused as a mistake in the program, with a way out.
func refused(t *testing.T, name string, err error, text string) {
	t.Helper()
	switch {
	case !errors.Is(err, repo.ErrNested) || errors.Is(err, repo.ErrLocked):
		t.Errorf("%s: %v, want ErrNested", name, err)
	case repo.Retryable(err) || repo.VerdictOf(err) != repo.NotWritten:
		t.Errorf("%s: retryable %v, %v", name, repo.Retryable(err), repo.VerdictOf(err))
	case !strings.Contains(err.Error(), text):
		t.Errorf("%s: %v does not say %q", name, err, text)
	}
}
