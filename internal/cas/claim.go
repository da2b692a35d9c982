package cas

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/typed"
)

// claim writes an edit that changes what the item claims: in a transaction, which has a
// verdict of its own. What the item is then is not kept.
func (u *update) claim(ctx context.Context, image, now ddb.Item, edit typed.Edit) (item any, next ddb.Item, err error) {
	u.sent = true
	moved, err := typed.Claiming{Table: u.table, Settings: u.Settings, Key: u.waiter.Key, Raw: u.waiter.Raw, Base: image, Now: now, Count: u.count(), IfFree: u.waiter.IfFree}.Write(ctx)
	switch {
	case errors.Is(err, typed.ErrMoved):
		next, err = u.conflict(ctx, moved)
		return nil, next, err
	case err != nil, edit.Remove:
		return nil, nil, err
	}
	return u.table.WithVersion(edit.Item, typed.Version(u.waiter.Core, now)), nil, nil
}

// claim makes the item with its claims; the result is as that of the request without them.
func (c *creation) claim(ctx context.Context, now ddb.Item) (ddb.Result, error) {
	moved, err := typed.Claiming{Table: c.table, Settings: c.Settings, Key: c.Key, Raw: c.Raw, Base: c.hidden, Now: now, Count: 1, IfFree: c.IfFree}.Write(ctx)
	switch {
	case errors.Is(err, typed.ErrMoved):
		return ddb.Result{Outcome: ddb.Condition, Image: moved, Clean: true}, nil
	case err != nil:
		return ddb.Result{}, err
	}
	return ddb.Result{Outcome: ddb.Applied}, nil
}
