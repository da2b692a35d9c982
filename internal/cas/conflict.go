package cas

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
)

// undecided is the error where no verdict can be had.
func (u *update) undecided(base, now ddb.Item) error {
	if now[u.waiter.Core.Attr.LockedBy] != nil && u.unmoved(base, now) {
		if l, err := u.waiter.Lock(now); err == nil {
			return lock.Locked(u.waiter.Core, u.waiter.Key, l) // and in doubt
		}
	}
	if u.waiter.Core.Absent(now) {
		return u.waiter.Undecided(lock.FoundNothing)
	}
	return u.waiter.Undecided(lock.FoundOthers)
}

// unmoved reports whether the condition of a write based on one image would
// hold on another but for a lock.
func (u *update) unmoved(base, now ddb.Item) bool {
	for _, name := range append([]string{u.waiter.Core.Attr.Writers}, u.Seen...) {
		was, had := base[name]
		is, has := now[name]
		if had != has || had && !ddb.Equal(was, is) {
			return false
		}
	}
	return true
}

// conflict prepares the next attempt after others wrote first.
func (u *update) conflict(ctx context.Context, image ddb.Item) (ddb.Item, error) {
	core := u.waiter.Core
	if err := u.waiter.CheckShape(image); err != nil {
		return nil, err
	}
	if image[core.Attr.LockedBy] != nil && !u.FailFast {
		if err := u.waiter.WaitOrBreak(ctx, image); err != nil {
			return nil, err
		}
		return nil, errAgain
	}
	u.Conflicts++
	core.Observe.Conflict(ctx, u.Kind)
	if u.FailFast {
		return nil, lock.ErrContended
	}
	if !u.assumed { // nobody need have written since the call began
		u.tries++
	}
	if u.tries > 0 {
		if err := u.waiter.WaitAfterConflict(u.tries); u.tries >= u.Attempts {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ddb.CtxError(ctx)
	}
	if u.tries <= atOnce && !core.Absent(image) {
		return image, errAgain
	}
	u.waiter.Backoff(ctx, time.Time{})
	return nil, errAgain
}
