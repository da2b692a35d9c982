package cas

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
)

// undecided is the error where no verdict can be had.
func (u *update) undecided(base, now ddb.Item) error {
	if u.waiter.Barred(now) && u.unmoved(base, now) {
		if l, err := u.waiter.Lock(now); err == nil {
			return lock.Locked(u.waiter.Core, u.waiter.Key, l) // and in doubt
		}
	}
	if u.waiter.Core.Absent(now) {
		return u.waiter.Undecided(unlocked.FoundNothing)
	}
	return u.waiter.Undecided(unlocked.FoundOthers)
}

// unmoved reports whether the condition of a write based on one image would
// hold on another but for a lock, or, of one that was sent in the call's turn, but for the
// time that has run out: once the turn is another's, it never holds again.
func (u *update) unmoved(base, now ddb.Item) bool {
	if u.waiter.InTurn() && !u.waiter.Holds(now) {
		return false
	}
	return ddb.EqualIn(base, now, append([]string{u.waiter.Core.Attr.Writers}, u.demanded()...)...)
}

// refusal is what the image that refused a write tells.
func (u *update) refusal(base, now ddb.Item, removes bool) lockless.Refusal {
	core := u.waiter.Core
	r := lockless.Refusal{Removes: removes, Base: core.Ring(base), Now: core.Ring(now), Counted: core.Version != "",
		Gone: core.Absent(now), Unmoved: u.unmoved(base, now)}
	r.Since = typed.Version(core, now)
	if !core.Hidden(base) { // else the version begins anew
		r.Since -= typed.Version(core, base)
	}
	return r
}

// outdate makes a write that a lock alone has refused impossible, where nothing of what
// it demands moves with the lock, as with one by hand: else a copy of it could be applied
// when the lock is gone, beside the next try, or after the call has said that nothing was
// written. It leaves an id that is nobody's; one request, and none of a lock with a token.
func (u *update) outdate(ctx context.Context, base, now ddb.Item) error {
	core := u.waiter.Core
	if len(base) == 0 || !u.waiter.Barred(now) || !u.unmoved(base, now) {
		return nil
	}
	w := core.NewWrite()
	Move(w, protocol.NewMark(), now)
	in, err := w.Update(u.waiter.Raw)
	if err != nil {
		return err
	}
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	switch res := core.Update(ctx, in, ddb.Options{}); {
	case res.Outcome == ddb.Applied:
		return nil
	case res.Outcome == ddb.Condition && !core.Wrote(res.Image, u.id) && !core.Absent(res.Image):
		return nil // others have moved it
	}
	u.waiter.Doubt.Sent(false)
	l, err := u.waiter.Lock(now)
	if err != nil {
		return err
	}
	return lock.Locked(core, u.waiter.Key, l) // and in doubt
}

// Move leaves a mark on the ring of an item whose ring, and what else of it is named, are as
// in the image. What demands that ring is impossible then.
func Move(w *protocol.Write, mark protocol.WriteID, image ddb.Item, seen ...string) {
	w.Set(w.Core.Attr.Writers, w.Core.Push(mark, image))
	w.IfExists(w.Core.Partition)
	w.IfSeen(image, append([]string{w.Core.Attr.Writers}, seen...)...)
}

// conflict prepares the next attempt after others wrote first.
func (u *update) conflict(ctx context.Context, image ddb.Item) (ddb.Item, error) {
	core := u.waiter.Core
	if err := u.waiter.CheckShape(image); err != nil {
		return nil, err
	}
	if u.waiter.Barred(image) && !u.FailFast {
		if err := u.waiter.WaitOrBreak(ctx, image); err != nil {
			return nil, err
		}
		return u.waiter.Fresh(), errAgain
	}
	u.Conflicts++
	core.Observe.Conflict(ctx, u.Kind)
	core.Raced(u.waiter.Raw)
	if u.FailFast {
		return nil, lock.ErrContended
	}
	if !u.assumed { // nobody need have written since the call began
		u.tries++
		u.inRow++
	}
	if u.tries > 0 {
		if err := u.waiter.WaitAfterConflict(u.tries); u.tries >= u.Attempts {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ddb.CtxError(ctx)
	}
	if u.takesLock() {
		if err := u.waiter.TakeLock(ctx, image); err != nil {
			return nil, err
		}
		return u.waiter.Fresh(), errAgain
	}
	return u.following(ctx, image), errAgain
}

// following is the image of the next try, which is at once; nil: it has slept, and reads again.
func (u *update) following(ctx context.Context, image ddb.Item) ddb.Item {
	most, isEager := atOnce, u.Wait.Max <= eager
	if isEager {
		most = eagerAtOnce
	}
	if u.inRow <= most && !u.waiter.Core.Absent(image) {
		return image
	}
	if isEager {
		u.inRow = 0
	}
	u.waiter.Backoff(ctx, time.Time{})
	return nil
}
