package cas

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/expressions"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// Apply makes a change that is written as an expression, on the item as it is then,
// in one request: it reads nothing. It returns the item as written, and its image; with
// *repo.ConditionError the item that did not meet the conditions, with repo.ErrDone the
// image alone, which does not fit the type.
//
// Nothing binds the request to a state of the item, so the same request could be
// applied twice: it is not repeated once it may have been applied. The ring of
// writers then tells, while it is that write's own. A request with an id is bound by
// that: it is repeated as any other.
func Apply(ctx context.Context, t *typed.Table, s lock.Settings, key repo.Key, update expression.UpdateBuilder, conditions []expression.ConditionBuilder, once *typed.Once) (_ any, _ ddb.Item, err error) {
	raw, err := typed.KeyToWrite(ctx, t, key)
	if err != nil {
		return nil, nil, err
	}
	ctx, told := t.Core.Observe.Call(ctx, s.Kind, "Apply", key.String)
	defer told.End(&err)
	built, err := expressions.Build(t.Core, update, conditions)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.Core.ItemName(key), err)
	}
	a := &applying{table: t, id: protocol.NewWriteID(), update: built, guarded: len(conditions) > 0, once: once,
		waiter: &unlocked.Call{Waiter: lock.Waiter{Core: t.Core, Key: key, Raw: raw, Settings: s}}}
	a.excluded = lockless.NewExclusion(a.id)
	a.waiter.Exclusive(a.excluded)
	if once != nil {
		kept, fingerprint := once.Kept()
		a.ids = lockless.NewUnreadOnce(kept, fingerprint, t.Core.Epoch(t.Core.Clock()))
	}
	var image ddb.Item
	err = a.waiter.Do(ctx, func() (err error) {
		image, err = a.run(ctx)
		return err
	})
	if err != nil {
		return a.shown, nil, err
	}
	item, err := decodeDone(t, image)
	return item, image, err
}

// decodeDone is the item of an image behind a change that was made.
func decodeDone(t *typed.Table, image ddb.Item) (any, error) {
	item, err := t.Decode(image)
	if err != nil {
		err = fmt.Errorf("%w: %w", repo.ErrDone, err)
	}
	return item, err
}

// applying is one such call.
type applying struct {
	table    *typed.Table
	waiter   *unlocked.Call
	id       protocol.WriteID
	update   *expressions.Update
	guarded  bool // it has conditions of the caller's own
	once     *typed.Once
	ids      lockless.UnreadOnce // how the next try carries an id: with once that, else, if marks, excluded
	excluded protocol.OnceID     // what no try may find
	marks    bool                // a lock has refused a try: the next one leaves excluded, so that no copy is applied
	late     bool                // what refused the latest try may have been that there was no item
	shown    any                 // the item that did not meet the conditions
}

// write puts the caller's update under the marks of the protocol.
func (a *applying) write() (*dynamodb.UpdateItemInput, error) {
	core := a.table.Core
	w := core.NewWrite()
	expressions.DemandVisible(core, w, a.waiter.IfFree)
	lockless.LeaveUnread(w, a.id)
	if a.once != nil || !a.marks {
		lockless.IfNotExcluded(w, a.excluded)
	}
	if a.once != nil || a.marks {
		a.ids.Add(w)
	}
	if _, err := a.update.Merge(w, func(attr string) error { return expressions.CheckTarget(core, attr) }); err != nil {
		return nil, err
	}
	in, err := w.Update(a.waiter.Raw)
	if err == nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	return in, err
}

// run sends the write until it has a verdict, and returns the item as written.
func (a *applying) run(ctx context.Context) (ddb.Item, error) {
	how := ddb.Options{Once: true, AwaitAnswer: true, Absence: true}
	if a.once != nil {
		how = ddb.Options{Absence: true, Decide: true}
	}
	a.waiter.Expect(a.id, nil)
	for {
		in, err := a.write()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.waiter.Core.ItemName(a.waiter.Key), err)
		}
		res := a.waiter.Update(ctx, in, how)
		switch {
		case res.Outcome == ddb.Applied:
			return res.Item, nil
		case res.Outcome != ddb.Condition:
			if res.Outcome == ddb.Unknown || res.Unjudged && a.once != nil { // an id stays in sight, whoever writes behind it
				if image := a.evidence(ctx); image != nil {
					return image, nil
				}
			}
			return nil, lock.Failed(a.waiter.Core, a.waiter.Key, res)
		}
		a.late = res.Late
		if image, err := a.judge(ctx, res.Image); image != nil || err != nil {
			return image, err
		}
	}
}

// judge decides what the image of a refused write means. It returns the item as written, if
// some image shows that; nil is for another try.
func (a *applying) judge(ctx context.Context, image ddb.Item) (ddb.Item, error) {
	core := a.table.Core
	if err := a.once.Consult(ctx, core, image); err != nil {
		return nil, err
	}
	switch verdict := a.waiter.Doubt.End(); {
	case core.Wrote(image, a.id), a.once.In(core, image), a.marks && lockless.Remembers(core, image, a.excluded):
		return image, nil
	case verdict == protocol.Undecided && a.once == nil:
		if v, seen := a.waiter.Seen(); v == protocol.Committed {
			return seen, nil
		}
		return nil, a.waiter.Undecided(unlocked.FoundOthers)
	}
	if err := a.once.Refuse(core, image); err != nil {
		return nil, fmt.Errorf("%s: %w", core.ItemName(a.waiter.Key), err)
	}
	return nil, a.refused(ctx, image)
}

// evidence reads the item after an answer was lost. It is returned if it shows that
// the write was applied; nil if it shows nothing: others may have started a new
// ring, and the request may still be on its way.
func (a *applying) evidence(ctx context.Context) ddb.Item {
	if v, image := a.waiter.Seen(); v == protocol.Committed {
		return image
	}
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	image, err := a.table.Core.Get(ctx, a.waiter.Raw)
	if err == nil && a.once.Shown(ctx, a.table.Core, a.id, image) {
		return image
	}
	return nil
}

// refused decides what the image of a refused write means: nil is for another try.
func (a *applying) refused(ctx context.Context, image ddb.Item) error {
	core := a.table.Core
	if core.Absent(image) {
		return lock.NotFound(a.waiter.Key, core.Name)
	}
	if err := a.waiter.CheckShape(image); err != nil {
		return err
	}
	switch {
	case a.waiter.Barred(image) && (!core.Hidden(image) || image[core.Attr.LockStub] != nil):
		return a.wait(ctx, image)
	case core.Hidden(image):
		return lock.NotFound(a.waiter.Key, core.Name)
	}
	if err := a.waiter.CheckCounted(image); err != nil {
		return err
	}
	if a.once != nil || a.marks {
		if other, err := a.realign(ctx, image); other || err != nil {
			return err
		}
	}
	return a.conditionFailed(image)
}

// wait waits for a lock that the image of a refused write shows. From then on the write
// carries an id, by which it is known again.
func (a *applying) wait(ctx context.Context, image ddb.Item) error {
	if a.once == nil {
		core := a.table.Core
		a.marks = true
		a.ids = lockless.NewUnreadOnce(a.excluded, protocol.OnceID{}, core.Epoch(core.Clock()))
		if _, err := a.realign(ctx, image); err != nil {
			return err
		}
	}
	return a.waiter.WaitOrBreak(ctx, image)
}

// conditionFailed is the error of a write which nothing can have refused but its caller's
// own condition. nil: the item may have come behind the refusal.
func (a *applying) conditionFailed(image ddb.Item) error {
	core := a.table.Core
	if a.late {
		return nil
	}
	if !a.guarded { // an attribute that no condition can tell apart from the library's
		return fmt.Errorf("%w: %s: it refuses a write without a reason that it shows", repo.ErrSchema, core.ItemName(a.waiter.Key))
	}
	item, err := a.table.Decode(image)
	if err != nil {
		return err
	}
	a.shown = item
	return &repo.ConditionError{Table: core.Name, Key: a.waiter.Key, Item: a.table.Value(item)}
}

// realign makes the next try carry its id as an image demands it; other says that it
// differs from the one before.
func (a *applying) realign(ctx context.Context, image ddb.Item) (other bool, err error) {
	core := a.table.Core
	if err := a.once.MakeRoom(ctx, core, image, image, true); err != nil {
		return false, err
	}
	next, other, err := a.ids.After(core, image, core.Epoch(core.Clock()), a.once.Move(core, image))
	switch {
	case next.Forgets() && a.waiter.Doubt.Open():
		return false, a.waiter.Undecided("the item has forgotten the ids of that time")
	case err != nil:
		return false, fmt.Errorf("%s: %w", core.ItemName(a.waiter.Key), err)
	}
	a.ids = next
	return other, nil
}
