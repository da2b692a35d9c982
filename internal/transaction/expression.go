package transaction

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/expressions"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Apply changes an item by an expression, under conditions of the caller's own. What
// it makes of the item only DynamoDB knows.
func (v *View) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) error {
	core := v.s.Table.Core
	built, err := expressions.Build(core, update, conditions)
	if err != nil {
		return fmt.Errorf("%s: %w", core.ItemName(key), err)
	}
	merge := func(w *protocol.Write) error {
		_, err := built.Merge(w, func(attr string) error { return expressions.CheckTarget(core, attr) })
		return err
	}
	ev := Event{
		Single: true,
		Check:  func(now ddb.Item) error { return v.visible(key, now) },
		Fill: func(w *protocol.Write, id protocol.WriteID, _ ddb.Item) error {
			expressions.MarkUnread(core, w, id)
			return merge(w)
		},
		Known: func(w *protocol.Write, id protocol.WriteID, image ddb.Item) error {
			lockless.CountVersion(w)
			w.Set(core.Attr.Writers, id.Push(core.Ring(image)))
			lockless.StampUpdated(w, core.Clock())
			return merge(w)
		},
	}
	if len(conditions) > 0 {
		ev.Condition = func(image ddb.Item) error {
			item, err := v.s.Table.Decode(image)
			if err != nil {
				return err
			}
			return &repo.ConditionError{Table: core.Name, Key: key, Item: v.s.Table.Value(item)}
		}
	}
	return v.Write(ctx, key, ev)
}

// visible refuses an item that is not there for readers.
func (v *View) visible(key repo.Key, now ddb.Item) error {
	if v.s.Table.Core.Hidden(now) {
		return lock.NotFound(key, v.s.Table.Core.Name)
	}
	return nil
}
