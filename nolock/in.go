package nolock

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// View is a repository inside a transaction, whose writes it sees.
type View[T any] struct {
	repo.Repository[T]
	r    *engine
	view *transaction.View
}

// In is the repository inside a transaction. The first touch of an item reads it,
// but for Create, Put, Apply and DeleteAt: the commit demands that the event is
// newer than the stored one, or, where the item was read, that it is as read. A
// stale event fails the transaction with repo.ErrStale, a duplicate changes
// nothing. Where others wait in the queue on an item, the transaction takes its turn.
func (r *Repository[T]) In(tx *txn.Tx) *View[T] {
	view := r.r.strategy.In(transaction.Of(tx))
	return &View[T]{transaction.Typed[T](view), r.r, view}
}

// Keys are keys of the repository, for [txn.Tx.Prefetch].
func (r *Repository[T]) Keys(keys ...repo.Key) txn.Keys { return r.r.strategy.Keys(keys...) }

// Put writes the whole item if its event is newer than the stored one, or if there
// is no item.
func (v *View[T]) Put(ctx context.Context, item T) error {
	r := v.r
	raw, err := r.whole(&item)
	if err != nil {
		return err
	}
	d := r.core.Whole(raw).Without(r.core.Version)
	return v.event(ctx, r.table.KeyOf(&item), transaction.Event{Raw: raw, Whole: raw, Fill: func(w *protocol.Write, id protocol.WriteID, hidden ddb.Item) error {
		if err := r.core.CheckSize(r.core.Key(raw), d); err != nil {
			return err
		}
		r.putting(w, raw, hidden)
		r.guardPart(w, raw, id, (*protocol.Write).IfUnlocked)
		return nil
	}})
}

// Apply makes a partial change under the same guard. It must be the only operation
// of the transaction on its item: what it makes of the item is known to DynamoDB
// alone. Where a tombstone has kept what the update builds on, one request more clears that
// beforehand, which no reader sees, whatever becomes of the transaction.
func (v *View[T]) Apply(ctx context.Context, key repo.Key, at any, update expression.UpdateBuilder) error {
	raw, err := v.r.event(key, at)
	if err != nil {
		return err
	}
	built, err := v.r.build(key, update)
	if err != nil {
		return err
	}
	fill := func(ifFree func(*protocol.Write)) func(*protocol.Write, protocol.WriteID, ddb.Item) error {
		return func(w *protocol.Write, id protocol.WriteID, hidden ddb.Item) error {
			if err := v.r.merge(w, raw, built, hidden); err != nil {
				return err
			}
			v.r.guardPart(w, raw, id, ifFree)
			return nil
		}
	}
	return v.event(ctx, key, transaction.Event{
		Raw:  raw,
		Fill: fill((*protocol.Write).IfUnlocked),
		Held: fill(func(*protocol.Write) {}),
		Clear: func(ctx context.Context, hidden ddb.Item) (ddb.Item, error) {
			var left leftovers
			err := v.r.merge(v.r.core.NewWrite(), raw, built, hidden)
			if errors.As(err, &left) {
				return v.r.sweep(ctx, key, hidden, left)
			}
			return hidden, err
		},
	})
}

// DeleteAt applies a delete event.
func (v *View[T]) DeleteAt(ctx context.Context, key repo.Key, at any) error {
	r := v.r
	raw, err := r.event(key, at)
	if err != nil {
		return err
	}
	return v.event(ctx, key, transaction.Event{
		Raw: raw,
		Fill: func(w *protocol.Write, id protocol.WriteID, _ ddb.Item) error {
			r.bury(w, raw)
			r.guardPart(w, raw, id, (*protocol.Write).IfUnlocked)
			return nil
		},
		Do: func(now ddb.Item) (ddb.Item, error) {
			if len(now) == 0 {
				now = r.core.Key(raw)
			}
			tombstone := r.buried(now)
			for _, name := range []string{r.core.EventTime, r.core.EventID} {
				if v := raw[name]; v != nil {
					tombstone[name] = v
				} else {
					delete(tombstone, name)
				}
			}
			return tombstone, nil
		},
	})
}

func (v *View[T]) event(ctx context.Context, key repo.Key, ev transaction.Event) error {
	if err := v.r.checkAhead(ev.Raw[v.r.core.EventTime]); err != nil {
		return fmt.Errorf("%s: %w", v.r.core.ItemName(key), err)
	}
	return v.view.Write(ctx, key, ev)
}

// buried is the tombstone that a deletion leaves of an item.
func (r *engine) buried(item ddb.Item) ddb.Item {
	left := maps.Clone(item)
	for _, name := range append(r.unburied(item), r.core.Attr.LockStub) {
		delete(left, name)
	}
	if r.core.Version != "" {
		left[r.core.Version] = r.counted(item)
	}
	left[r.core.Attr.Tombstone] = ddb.True()
	left[r.core.Attr.TTL] = r.forgotten()
	return left
}

// guardPart makes an event of a write of a transaction, which starts a new ring of its
// id: that is the evidence for all parts.
func (r *engine) guardPart(w *protocol.Write, raw ddb.Item, id protocol.WriteID, ifFree func(*protocol.Write)) {
	lockless.CountVersion(w)
	w.Set(r.core.Attr.Writers, id.Push(nil))
	r.guard(w, raw, ifFree)
}
