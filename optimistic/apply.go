package optimistic

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Apply changes an item by an expression, without reading it, and returns it as
// written: counters, appends, guarded decrements, of any number of writers without
// a conflict. One request, which bills the larger size of the item; one more, and a
// wait, per try while somebody holds the item's lock.
//
// Conditions, if given, must all hold: else *repo.ConditionError (ErrCondition),
// and the item as it is. ErrNotFound where there is no item. The update must leave
// the key, the version, event time and id, and the library's attributes alone
// (ErrFixed), and name attributes that T has (ErrConfig; TableConfig.AnyAttribute).
// The version counts one, so that no Update loses the change. Where the item as written
// does not fit T, the error is repo.ErrDone.
//
// A request whose answer is lost is not repeated, for it could be applied twice. A
// read then looks for its traces; ErrOutcomeUnknown where it finds none.
func (r *Repository[T]) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (T, error) {
	return typed.As[T](r.r.apply(ctx, key, update, conditions, nil))
}

func (r *engine) apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions []expression.ConditionBuilder, once *typed.Once) (any, error) {
	item, image, err := cas.Apply(ctx, r.table, r.policy.Settings, key, update, conditions, once)
	if err == nil {
		r.cache.follow(r.table.Core.KeyText(image), image)
	}
	return item, err
}
