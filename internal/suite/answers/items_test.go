package answers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

type account = fixture.Account

func keyOf(id string) repo.Key { return repo.Key{Partition: id, Sort: 1} }

func first(id string) account { return account{ID: id, Seq: 1, At: 1, Balance: 100} }

// there makes the item through the repository that is tested, which so has seen what the
// endpoint answers, and changes it once: requests may be sent directly from now on.
func there[R repo.Repository[account]](t *testing.T, r R, id string) account {
	t.Helper()
	rig.Must(r.Create(t.Context(), first(id)))(t)
	return rig.Must(r.Update(t.Context(), keyOf(id), func(_ context.Context, a *account) error { a.At++; a.Balance = 0; return nil }))(t)
}

// look is the item as another process sees it; false: none is there.
func look(t *testing.T, p *place, id string) func(context.Context) (account, bool) {
	items := p.items(t, p.peer)
	return func(ctx context.Context) (account, bool) {
		a, err := items.Get(ctx, keyOf(id))
		if err != nil && !errors.Is(err, repo.ErrNotFound) {
			t.Error(err)
		}
		return a, err == nil
	}
}

func balance(t *testing.T, p *place, id string) func(context.Context) int {
	see := look(t, p, id)
	return func(ctx context.Context) int { a, _ := see(ctx); return int(a.Balance) }
}

func gone(t *testing.T, p *place, id string) func(context.Context) int {
	see := look(t, p, id)
	return func(ctx context.Context) int {
		if _, is := see(ctx); is {
			return 0
		}
		return 1
	}
}

// addOne is a change with an event of its own.
func addOne(_ context.Context, a *account) error { a.At++; a.Balance++; return nil }

func justErr[V any](_ V, err error) error { return err }

// on is a call of a repository on an item that is there.
func on[R repo.Repository[account]](name string, open func(*testing.T, *repo.Table[account]) R, counts func(*testing.T, *place, string) func(context.Context) int, run func(context.Context, R, account) error) call {
	return call{name: name, open: func(t *testing.T, p *place, c client, id string) action {
		r := open(t, p.items(t, c))
		a := there(t, r, id)
		return action{run: func(ctx context.Context) error { return run(ctx, r, a) }, applied: counts(t, p, id)}
	}}
}

// onNone is a call of a repository on an item that is not there; another is.
func onNone[R repo.Repository[account]](name string, open func(*testing.T, *repo.Table[account]) R, run func(context.Context, R, string) error) call {
	return call{name: name, open: func(t *testing.T, p *place, c client, id string) action {
		r := open(t, p.items(t, c))
		there(t, r, "other "+id)
		return action{run: func(ctx context.Context) error { return run(ctx, r, id) }, applied: balance(t, p, id)}
	}}
}

// common are the calls that all strategies have.
func common[R repo.Repository[account]](name string, open func(*testing.T, *repo.Table[account]) R) []call {
	made := func(id string) account { a := first(id); a.Balance = 1; return a }
	upsert := func(_ context.Context, a *account) error { a.At = 5; a.Balance++; return nil }
	return []call{
		onNone(name+".Create", open, func(ctx context.Context, r R, id string) error { return justErr(r.Create(ctx, made(id))) }),
		on(name+".Update", open, balance, func(ctx context.Context, r R, a account) error { return justErr(r.Update(ctx, keyOf(a.ID), addOne)) }),
		onNone(name+".Upsert, none", open, func(ctx context.Context, r R, id string) error { return justErr(r.Upsert(ctx, keyOf(id), upsert)) }),
		on(name+".Upsert", open, balance, func(ctx context.Context, r R, a account) error { return justErr(r.Upsert(ctx, keyOf(a.ID), upsert)) }),
		on(name+".Delete", open, gone, func(ctx context.Context, r R, a account) error { return r.Delete(ctx, keyOf(a.ID)) }),
		on(name+".Update that removes", open, gone, func(ctx context.Context, r R, a account) error {
			return justErr(r.Update(ctx, keyOf(a.ID), func(context.Context, *account) error { return repo.Remove }))
		}),
	}
}

var (
	plusOne = expression.Add(expression.Name("balance"), expression.Value(1))
	poor    = expression.Name("balance").LessThan(expression.Value(50))
)

func versions(cfg optimistic.Config) func(t *testing.T, table *repo.Table[account]) *optimistic.Repository[account] {
	return func(t *testing.T, table *repo.Table[account]) *optimistic.Repository[account] {
		return rig.Must(optimistic.New(table, cfg))(t)
	}
}

func locks(cfg pessimistic.Config) func(t *testing.T, table *repo.Table[account]) *pessimistic.Repository[account] {
	return func(t *testing.T, table *repo.Table[account]) *pessimistic.Repository[account] {
		return rig.Must(pessimistic.New(table, cfg))(t)
	}
}

func events(t *testing.T, table *repo.Table[account]) *nolock.Repository[account] {
	return rig.Must(nolock.New(table, nolock.Config{}))(t)
}

func itemCalls() (all []call) {
	type versioned = *optimistic.Repository[account]
	type locked = *pessimistic.Repository[account]
	type eventful = *nolock.Repository[account]
	plain, lock := versions(optimistic.Config{}), locks(pessimistic.Config{})
	all = append(all, common("nolock", events)...)
	all = append(all, common("optimistic", plain)...)
	all = append(all, common("pessimistic", lock)...)
	all = append(all,
		on("optimistic.Update, fair, combining", versions(optimistic.Config{Fair: true, Combine: true}), balance, func(ctx context.Context, r versioned, a account) error {
			return justErr(r.Update(ctx, keyOf(a.ID), addOne))
		}),
		on("pessimistic.Update, fair, combining", locks(pessimistic.Config{Fair: true, Combine: true}), balance, func(ctx context.Context, r locked, a account) error {
			return justErr(r.Update(ctx, keyOf(a.ID), addOne))
		}),
		on("optimistic.Save", plain, balance, func(ctx context.Context, r versioned, a account) error { a.Balance++; return justErr(r.Save(ctx, a)) }),
		on("optimistic.Apply", plain, balance, func(ctx context.Context, r versioned, a account) error {
			return justErr(r.Apply(ctx, keyOf(a.ID), plusOne, poor))
		}),
		on("optimistic.Once.Update", plain, balance, func(ctx context.Context, r versioned, a account) error {
			return justErr(r.Once("m").Update(ctx, keyOf(a.ID), addOne))
		}),
		on("optimistic.Once.Apply", plain, balance, func(ctx context.Context, r versioned, a account) error {
			return justErr(r.Once("m").Apply(ctx, keyOf(a.ID), plusOne, poor))
		}),
		on("pessimistic.Apply", lock, balance, func(ctx context.Context, r locked, a account) error {
			return justErr(r.Apply(ctx, keyOf(a.ID), plusOne, poor))
		}),
		on("pessimistic.Once.Update", lock, balance, func(ctx context.Context, r locked, a account) error {
			return justErr(r.Once("m").Update(ctx, keyOf(a.ID), addOne))
		}),
		onNone("pessimistic.Once.Create", lock, func(ctx context.Context, r locked, id string) error {
			a := first(id)
			a.Balance = 1
			return justErr(r.Once("m").Create(ctx, a))
		}),
		on("nolock.Put", events, balance, func(ctx context.Context, r eventful, a account) error { a.At, a.Balance = 9, 1; return r.Put(ctx, a) }),
		onNone("nolock.Put, none", events, func(ctx context.Context, r eventful, id string) error {
			a := first(id)
			a.Balance = 1
			return r.Put(ctx, a)
		}),
		on("nolock.Apply", events, balance, func(ctx context.Context, r eventful, a account) error { return r.Apply(ctx, keyOf(a.ID), 9, plusOne) }),
		on("nolock.DeleteAt", events, gone, func(ctx context.Context, r eventful, a account) error { return r.DeleteAt(ctx, keyOf(a.ID), 9) }),
	)
	all = append(all, on("optimistic.Remove", plain, gone, func(ctx context.Context, r versioned, a account) error { return r.Remove(ctx, a) }))
	for i, c := range all {
		// What is gone has no evidence of who has deleted it; an expression is not repeated.
		all[i].unsure = strings.HasPrefix(c.name, "optimistic.Delete") || c.name == "optimistic.Remove" || strings.HasSuffix(c.name, "removes") || strings.HasSuffix(c.name, "c.Apply")
	}
	return append(all, heldCalls()...)
}

// heldCalls are those of the lock of an item.
func heldCalls() (all []call) {
	on := func(name string, counts func(*testing.T, *place, string) func(context.Context) int, run func(context.Context, *lockedread.Locker[account], *lockedread.Held[account]) error) {
		all = append(all, call{name: "lockedread." + name, open: func(t *testing.T, p *place, c client, id string) action {
			r := locks(pessimistic.Config{})(t, p.items(t, c))
			there(t, r, id)
			held := rig.Must(r.Acquire(t.Context(), keyOf(id)))(t)
			return action{run: func(ctx context.Context) error { return run(ctx, r.Locker(), held) }, applied: counts(t, p, id)}
		}})
	}
	free := func(t *testing.T, p *place, id string) func(context.Context) int {
		other := locks(pessimistic.Config{})(t, p.items(t, p.peer))
		return func(ctx context.Context) int {
			held, err := other.TryAcquire(ctx, keyOf(id))
			if err != nil {
				return 0
			}
			rig.Is(t, held.Release(ctx))
			return 1
		}
	}
	on("Commit", balance, func(ctx context.Context, _ *lockedread.Locker[account], h *lockedread.Held[account]) error {
		a := h.Item()
		a.Balance++
		return justErr(h.Commit(ctx, a))
	})
	on("Delete", gone, func(ctx context.Context, _ *lockedread.Locker[account], h *lockedread.Held[account]) error {
		return h.Delete(ctx)
	})
	on("Release", free, func(ctx context.Context, _ *lockedread.Locker[account], h *lockedread.Held[account]) error {
		return h.Release(ctx)
	})
	on("Break", free, func(ctx context.Context, l *lockedread.Locker[account], h *lockedread.Held[account]) error {
		return l.Break(ctx, h.Key(), h.Token())
	})
	all = append(all, call{name: "lockedread.TryAcquire", takes: true, open: func(t *testing.T, p *place, c client, id string) action {
		r := locks(pessimistic.Config{})(t, p.items(t, c))
		there(t, r, id)
		return action{run: func(ctx context.Context) error { return justErr(r.TryAcquire(ctx, keyOf(id))) },
			applied: func(ctx context.Context) int { return 1 - free(t, p, id)(ctx) }}
	}})
	return all
}
