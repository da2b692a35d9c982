package copies_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// eventOps are events in a transaction, which know nothing of their items.
func eventOps() map[string]txnOp {
	base := txnOps()["nolock Update"]
	base.blind = true
	gone := func(ctx context.Context, s *shop, id string) int {
		if _, err := s.n.Get(ctx, thingKey(id)); err != nil {
			return 1
		}
		return 0
	}
	put, apply, deletes := base, base, base
	put.name, put.do = "nolock Put", func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		return s.n.In(tx).Put(ctx, happening{ID: id, N: start + 1, At: 1000})
	}
	apply.name, apply.do = "nolock Apply", func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		return s.n.In(tx).Apply(ctx, thingKey(id), 1000, count())
	}
	deletes.name, deletes.gone, deletes.done, deletes.do = "nolock DeleteAt", true, gone, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		return s.n.In(tx).DeleteAt(ctx, thingKey(id), 1000)
	}
	return map[string]txnOp{put.name: put, apply.name: apply, deletes.name: deletes}
}

// inQueueTransactions are transactions over versions, over event times, and over both, each of whose
// items that is there has a queue; and those that hold another item, or make one.
func inQueueTransactions() (all []transaction) {
	by := txnOps()
	for name, o := range eventOps() {
		by[name] = o
	}
	for _, names := range [][]string{
		{"Update"}, {"Delete"}, {"Apply"}, {"nolock Update"}, {"nolock Put"}, {"nolock Apply"}, {"nolock DeleteAt"},
		{"Update", "Update"}, {"Apply", "Update"}, {"Update", "Create"}, {"Delete", "Update"},
		{"nolock Update", "nolock Put"}, {"nolock Apply", "nolock DeleteAt"},
		{"Update", "nolock Update"}, {"Apply", "nolock Apply"}, {"nolock Put", "Update"}, {"locked Update", "Update"}, {"locked Update", "nolock Apply"},
	} {
		c := transaction{}
		for i, name := range names {
			if i > 0 {
				c.name += ", "
			}
			c.name, c.ops = c.name+name, append(c.ops, by[name])
		}
		all = append(all, c)
	}
	for _, c := range transactions() {
		if slices.Contains([]string{"Save, Update", "Remove, Update", "Once: Update Update "}, c.name) {
			all = append(all, c)
		}
	}
	return all
}

func isEvent(o txnOp) bool { return strings.HasPrefix(o.name, "nolock") }

// queueTaker is a locker of one item.
type queueTaker interface {
	take(ctx context.Context) (release func(context.Context) error, err error)
	breakHold(ctx context.Context) error
}

type takerIn[T any] struct {
	table *repo.Table[T]
	id    string
}

func (q takerIn[T]) take(ctx context.Context) (func(context.Context) error, error) {
	l, err := lockedread.New(q.table, lockedread.Config{Renew: true})
	if err != nil {
		return nil, err
	}
	h, err := l.Acquire(ctx, thingKey(q.id))
	if err != nil {
		return nil, err
	}
	return h.Release, nil
}

// breakHold ends the hold of whoever has the lock.
func (q takerIn[T]) breakHold(ctx context.Context) error {
	info, err := q.table.Inspect(ctx, thingKey(q.id))
	if err != nil || !info.Held {
		return err
	}
	l, err := lockedread.New(q.table, lockedread.Config{})
	if err == nil {
		err = l.Break(ctx, thingKey(q.id), info.Token)
	}
	if errors.Is(err, repo.ErrNotHeld) {
		return nil
	}
	return err
}
