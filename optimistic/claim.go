package optimistic

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// errClaims is why a write that has not read its item was refused: the item is at its
// version, and has other values in its unique attributes.
var errClaims = errors.New("the write changes unique attributes")

// isClaims reports whether that is why, of a write of which nothing was applied.
func isClaims(err error) bool {
	return errors.Is(err, errClaims) && !errors.Is(err, repo.ErrOutcomeUnknown)
}

// refusedAt is why an item has refused a write at its own version.
func refusedAt(turn *unlocked.Call, image, raw ddb.Item) error {
	if turn.Core.ClaimsDiffer(image, raw) {
		return errClaims
	}
	return conflicting(turn.Core, turn.Key)
}

// alone makes a write that has to know its item a transaction of that.
func (r *engine) alone(ctx context.Context, do func(context.Context, *transaction.View) error) error {
	return transaction.Alone(ctx, r.strategy(), r.policy.Attempts, do)
}

// removeClaims is removeVersion of an item that may have claims.
func (r *engine) removeClaims(ctx context.Context, item any, raw ddb.Item) (err error) {
	core, key := r.table.Core, r.table.KeyOf(item)
	ctx, told := core.Observe.Call(ctx, telemetry.Optimistic, "Remove", key.String)
	defer told.End(&err)
	if err := typed.Refuse(ctx, r.table, key, core.Key(raw)); err != nil {
		return err
	}
	return r.alone(ctx, func(ctx context.Context, view *transaction.View) error { return r.removeIn(ctx, view, item) })
}
