package cas

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Apply makes a change that is written as an expression, on the item as it is then,
// in one request: it reads nothing. It returns the item as written, and its image.
//
// Nothing binds the request to a state of the item, so the same request could be
// applied twice: it is not repeated once it may have been applied. The ring of
// writers then tells, while it is that write's own.
func Apply[T any](ctx context.Context, t *Table[T], s lock.Settings, key repo.Key, update expression.UpdateBuilder, conditions []expression.ConditionBuilder) (T, ddb.Item, error) {
	var zero T
	raw, err := t.EncodeKey(key)
	if err != nil {
		return zero, nil, err
	}
	a := &applying[T]{table: t, id: protocol.NewWriteID(), conditional: len(conditions) > 0,
		waiter: &lock.Waiter{Core: t.Core, Key: key, Raw: raw, Settings: s}}
	w, err := a.write(update, conditions)
	if err != nil {
		return zero, nil, fmt.Errorf("item %v: %w", key, err)
	}
	var image ddb.Item
	err = a.waiter.Do(ctx, func() (err error) {
		image, err = a.run(ctx, w)
		return err
	})
	if err != nil {
		var refused *repo.ConditionError
		if errors.As(err, &refused) {
			zero, _ = refused.Item.(T)
		}
		return zero, nil, err
	}
	item, err := t.Decode(image)
	return item, image, err
}

// applying is one such call.
type applying[T any] struct {
	table       *Table[T]
	waiter      *lock.Waiter
	id          protocol.WriteID
	conditional bool // the caller has conditions of its own
}

// write puts the caller's update under the marks of the protocol. Without a read
// the ring of writers cannot be extended: a new one starts, and the version counts
// on.
func (a *applying[T]) write(update expression.UpdateBuilder, conditions []expression.ConditionBuilder) (*protocol.Write, error) {
	core := a.table.Core
	w := core.NewWrite()
	w.IfExists(core.Partition)
	w.IfAbsent(core.Attr.LockStub)
	w.IfAbsent(core.Attr.Tombstone)
	w.IfUnlocked()
	w.IfOurs()
	if core.Version != "" {
		w.SetTo(core.Version, "if_not_exists("+w.Name(core.Version)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(1)))
	}
	w.Set(core.Attr.Writers, a.id.Push(nil))
	// Against a copy that something on the way has made, while nobody else has
	// written. Behind another write it would be applied: that is the limit of a
	// request which is bound to nothing.
	ring := w.Name(core.Attr.Writers)
	w.If("(attribute_not_exists(" + ring + ") OR " + ring + " <> " + w.Value(a.id.Push(nil)) + ")")
	return w, w.Merge(update, conditions, func(attr string) error { return CheckTarget(core, attr) })
}

// CheckTarget refuses an attribute that is not for a user's expression to change.
func CheckTarget(core *protocol.Core, attr string) error {
	if core.IsKey(attr) || core.Reserved(attr) || attr == core.Version || attr == core.EventTime || attr == core.EventID ||
		attr == core.Attr.TTL && !slices.Contains(core.Mapped, attr) {
		return fmt.Errorf("%w: the update changes attribute %q, which is the library's to write", repo.ErrFixed, attr)
	}
	return nil
}

// run sends the write until it has a verdict, and returns the item as written.
func (a *applying[T]) run(ctx context.Context, w *protocol.Write) (ddb.Item, error) {
	in, err := w.Update(a.waiter.Raw)
	if err != nil {
		return nil, fmt.Errorf("item %v: %w", a.waiter.Key, err)
	}
	in.ReturnValues = types.ReturnValueAllNew
	for {
		res := a.waiter.Update(ctx, in, ddb.Options{Once: true, AwaitAnswer: true, Absence: true})
		switch res.Outcome {
		case ddb.Applied:
			return res.Item, nil
		case ddb.Condition:
		case ddb.Unknown:
			if image := a.evidence(ctx); image != nil {
				return image, nil
			}
			fallthrough
		default:
			return nil, lock.Failed(a.waiter.Key, res)
		}
		switch a.waiter.Doubt.ByID(a.id, a.table.Core.Ring(res.Image)) {
		case protocol.Committed:
			return res.Image, nil
		case protocol.Undecided:
			return nil, a.waiter.Undecided(lock.FoundOthers)
		}
		if err := a.refused(ctx, res.Image); err != nil {
			return nil, err
		}
	}
}

// evidence reads the item after an answer was lost. It is returned if it shows that
// the write was applied; nil if it shows nothing: others may have started a new
// ring, and the request may still be on its way.
func (a *applying[T]) evidence(ctx context.Context) ddb.Item {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	image, err := a.table.Core.Get(ctx, a.waiter.Raw)
	if err != nil || protocol.RingVerdict(a.id, nil, a.table.Core.Ring(image)) != protocol.Committed {
		return nil
	}
	return image
}

// refused decides what the image of a refused write means: nil is for another try.
func (a *applying[T]) refused(ctx context.Context, image ddb.Item) error {
	core := a.table.Core
	if core.Absent(image) {
		return lock.NotFound(a.waiter.Key, core.Name)
	}
	if err := a.waiter.CheckShape(image); err != nil {
		return err
	}
	switch {
	case image[core.Attr.LockedBy] != nil && (!core.Hidden(image) || image[core.Attr.LockStub] != nil):
		return a.waiter.WaitOrBreak(ctx, image)
	case core.Hidden(image):
		return lock.NotFound(a.waiter.Key, core.Name)
	case !a.conditional: // an attribute that no condition can tell apart from the library's
		return fmt.Errorf("%w: item %v in table %q: it refuses a write without a reason that it shows", repo.ErrSchema, a.waiter.Key, core.Name)
	}
	item, err := a.table.Decode(image)
	if err != nil {
		return err
	}
	return &repo.ConditionError{Key: a.waiter.Key, Item: item}
}
