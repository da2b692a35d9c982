package wire

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// stored makes the table with one item.
func stored(t *testing.T, b *bench) *repo.Table[item] {
	t.Helper()
	table := b.table(t)
	rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), first))(t)
	return table
}

// strategy makes the operations of a repository: open makes one, and each
// operation runs on an item that is there, or on none.
func strategy[R repo.Repository[item]](name string, open func(*testing.T, *repo.Table[item]) R) []operation {
	on := func(prepare func(*testing.T, *bench) *repo.Table[item], do func(context.Context, R) error) func(*testing.T, *bench) func() error {
		return func(t *testing.T, b *bench) func() error {
			r := open(t, prepare(t, b))
			return func() error { return do(t.Context(), r) }
		}
	}
	none := func(t *testing.T, b *bench) *repo.Table[item] { return b.table(t) }
	return []operation{
		{name: name + ": Create", prepare: on(none, func(ctx context.Context, r R) error { _, err := r.Create(ctx, first); return err })},
		{name: name + ": Get", prepare: on(stored, func(ctx context.Context, r R) error { _, err := r.Get(ctx, key); return err })},
		{name: name + ": Update", prepare: on(stored, func(ctx context.Context, r R) error { _, err := r.Update(ctx, key, addOne); return err })},
		{name: name + ": Update that changes nothing", prepare: on(stored, func(ctx context.Context, r R) error {
			_, err := r.Update(ctx, key, func(context.Context, *item) error { return nil })
			return err
		})},
		{name: name + ": Upsert of a new item", prepare: on(none, func(ctx context.Context, r R) error { _, err := r.Upsert(ctx, key, addOne); return err })},
		{name: name + ": Upsert of an item that is there", prepare: on(stored, func(ctx context.Context, r R) error { _, err := r.Upsert(ctx, key, addOne); return err })},
		{name: name + ": Update that removes", prepare: on(stored, func(ctx context.Context, r R) error {
			_, err := r.Update(ctx, key, func(context.Context, *item) error { return repo.Remove })
			return err
		})},
		{name: name + ": Delete", prepare: on(stored, func(ctx context.Context, r R) error { return r.Delete(ctx, key) })},
	}
}

func nolockOperations() []operation {
	open := func(t *testing.T, table *repo.Table[item]) *nolock.Repository[item] {
		return rig.Must(nolock.New(table, nolock.Config{}))(t)
	}
	on := func(name string, there bool, do func(context.Context, *nolock.Repository[item]) error) operation {
		return operation{name: "nolock: " + name, prepare: func(t *testing.T, b *bench) func() error {
			table := b.table(t)
			r := open(t, table)
			if there {
				rig.Is(t, r.Put(t.Context(), first))
			}
			return func() error { return do(t.Context(), r) }
		}}
	}
	return append(strategy("nolock", open),
		on("Put of a new item", false, func(ctx context.Context, r *nolock.Repository[item]) error { return r.Put(ctx, first) }),
		on("Put of a later event", true, func(ctx context.Context, r *nolock.Repository[item]) error { return r.Put(ctx, next) }),
		on("Put of a duplicate", true, func(ctx context.Context, r *nolock.Repository[item]) error { return r.Put(ctx, first) }),
		on("Apply", true, func(ctx context.Context, r *nolock.Repository[item]) error {
			return r.Apply(ctx, key, nolock.Event{Time: 11, ID: "e2"}, expression.Add(expression.Name("balance"), expression.Value(1)))
		}),
		on("DeleteAt", true, func(ctx context.Context, r *nolock.Repository[item]) error {
			return r.DeleteAt(ctx, key, nolock.Event{Time: 11, ID: "e2"})
		}),
	)
}

func optimisticOperations() []operation {
	open := func(t *testing.T, table *repo.Table[item]) *optimistic.Repository[item] {
		return rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	}
	on := func(name string, cfg optimistic.Config, do func(context.Context, *optimistic.Repository[item], item) error) operation {
		return operation{name: "optimistic: " + name, prepare: func(t *testing.T, b *bench) func() error {
			r := rig.Must(optimistic.New(b.table(t), cfg))(t)
			created := rig.Must(r.Create(t.Context(), first))(t)
			return func() error { return do(t.Context(), r, created) }
		}}
	}
	change := func(ctx context.Context, r *optimistic.Repository[item], _ item) error {
		_, err := r.Update(ctx, key, addOne)
		return err
	}
	return append(append(strategy("optimistic", open), operation{name: "optimistic: Save of an item that the process has seen", prepare: func(t *testing.T, b *bench) func() error {
		r := open(t, b.table(t))
		saved := rig.Must(r.Save(t.Context(), rig.Must(r.Create(t.Context(), first))(t)))(t)
		return func() error { _, err := r.Save(t.Context(), saved); return err }
	}}),
		on("Save", optimistic.Config{}, func(ctx context.Context, r *optimistic.Repository[item], created item) error {
			created.Balance, created.Note, created.At = 9, "", 11
			_, err := r.Save(ctx, created)
			return err
		}),
		on("Remove", optimistic.Config{}, func(ctx context.Context, r *optimistic.Repository[item], created item) error {
			return r.Remove(ctx, created)
		}),
		on("Apply", optimistic.Config{}, func(ctx context.Context, r *optimistic.Repository[item], _ item) error {
			_, err := r.Apply(ctx, key, takeOne, hasOne)
			return err
		}),
		on("Once.Update", optimistic.Config{}, func(ctx context.Context, r *optimistic.Repository[item], _ item) error {
			_, err := r.Once("m").Update(ctx, key, addOne)
			return err
		}),
		on("Once.Apply", optimistic.Config{}, func(ctx context.Context, r *optimistic.Repository[item], _ item) error {
			_, err := r.Once("m").Apply(ctx, key, takeOne, hasOne)
			return err
		}),
		on("Update, combining", optimistic.Config{Combine: true}, change),
		on("Update, fair", optimistic.Config{Fair: true}, change),
	)
}

func pessimisticOperations() []operation {
	open := func(t *testing.T, table *repo.Table[item]) *pessimistic.Repository[item] {
		return rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Owner: "owner", Race: true}))(t)
	}
	return append(strategy("pessimistic, racing", open), operation{name: "pessimistic, racing: Apply", prepare: func(t *testing.T, b *bench) func() error {
		r := open(t, stored(t, b))
		return func() error { _, err := r.Apply(t.Context(), key, takeOne, hasOne); return err }
	}}, operation{name: "pessimistic, racing: Once.Update", prepare: func(t *testing.T, b *bench) func() error {
		r := open(t, stored(t, b))
		return func() error { _, err := r.Once("m").Update(t.Context(), key, addOne); return err }
	}}, operation{name: "pessimistic, racing: Once.Create", prepare: func(t *testing.T, b *bench) func() error {
		r := open(t, b.table(t))
		return func() error { _, err := r.Once("m").Create(t.Context(), first); return err }
	}})
}

// A change as an expression, with a condition of the caller's own.
var (
	takeOne = expression.Add(expression.Name("balance"), expression.Value(-1))
	hasOne  = expression.Name("balance").GreaterThanEqual(expression.Value(1))
)

func lockedreadOperations() (all []operation) {
	ours := lockedread.Config{Lease: lease, Owner: "owner", Race: true}
	add := func(name string, cfg lockedread.Config, do func(context.Context, *lockedread.Locker[item]) error) {
		all = append(all, operation{name: "lockedread: " + name, prepare: func(t *testing.T, b *bench) func() error {
			l := rig.Must(lockedread.New(stored(t, b), cfg))(t)
			return func() error { return do(t.Context(), l) }
		}})
	}
	held := func(name string, do func(context.Context, *lockedread.Locker[item], *lockedread.Held[item]) error) {
		all = append(all, operation{name: "lockedread: " + name, prepare: func(t *testing.T, b *bench) func() error {
			l := rig.Must(lockedread.New(stored(t, b), ours))(t)
			h := rig.Must(l.Acquire(t.Context(), key))(t)
			return func() error { return do(t.Context(), l, h) }
		}})
	}
	acquire := func(ctx context.Context, l *lockedread.Locker[item]) error { _, err := l.Acquire(ctx, key); return err }
	change := func(ctx context.Context, l *lockedread.Locker[item]) error {
		_, err := l.Update(ctx, key, addOne)
		return err
	}
	add("Acquire", ours, acquire)
	add("Acquire, clockless", lockedread.Config{Lease: lease, Owner: "owner", Clockless: true, Race: true}, acquire)
	add("Acquire, in the queue", lockedread.Config{Lease: lease, Owner: "owner"}, acquire)
	add("TryAcquire", ours, func(ctx context.Context, l *lockedread.Locker[item]) error {
		_, err := l.TryAcquire(ctx, key)
		return err
	})
	add("AcquireOrCreate of a new item", ours, func(ctx context.Context, l *lockedread.Locker[item]) error {
		_, err := l.AcquireOrCreate(ctx, repo.Key{Partition: "p", Sort: 2})
		return err
	})
	add("Update", ours, change)
	add("Update, combining", lockedread.Config{Lease: lease, Owner: "owner", Combine: true, Race: true}, change)
	add("Update, in the queue", lockedread.Config{Lease: lease, Owner: "owner"}, change)
	add("Upsert of a new item", ours, func(ctx context.Context, l *lockedread.Locker[item]) error {
		_, err := l.Upsert(ctx, repo.Key{Partition: "p", Sort: 2}, addOne)
		return err
	})
	held("Held.Commit", func(ctx context.Context, _ *lockedread.Locker[item], h *lockedread.Held[item]) error {
		changed := h.Item()
		changed.Balance, changed.Note, changed.At = 9, "", 11
		_, err := h.Commit(ctx, changed)
		return err
	})
	held("Held.Release", func(ctx context.Context, _ *lockedread.Locker[item], h *lockedread.Held[item]) error {
		return h.Release(ctx)
	})
	held("Held.Delete", func(ctx context.Context, _ *lockedread.Locker[item], h *lockedread.Held[item]) error {
		return h.Delete(ctx)
	})
	held("Held.Extend", func(ctx context.Context, _ *lockedread.Locker[item], h *lockedread.Held[item]) error {
		return h.Extend(ctx)
	})
	held("Break", func(ctx context.Context, l *lockedread.Locker[item], h *lockedread.Held[item]) error {
		return l.Break(ctx, key, h.Token())
	})
	held("TryAcquire of a held item", func(ctx context.Context, l *lockedread.Locker[item], _ *lockedread.Held[item]) error {
		_, err := l.TryAcquire(ctx, key)
		return locked(err)
	})
	return all
}
