package cas

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
)

// edit runs the change, unless the write would be refused.
func (u *update) edit(ctx context.Context, image ddb.Item, from typed.Snapshot) (edit typed.Edit, err error) {
	core := u.waiter.Core
	if err := u.Once.Refuse(core, image); err != nil {
		return edit, u.named(err)
	}
	if u.waiter.Barred(image) {
		return edit, u.wait(ctx, image)
	}
	if u.Begin != nil {
		u.Begin(core.Hidden(image))
	}
	return u.MakeEdit(ctx, u.table, from)
}

// check refuses an edit that must not be written.
func (u *update) check(from typed.Snapshot, edit typed.Edit) error {
	if edit.Remove {
		return nil
	}
	err := typed.CheckNotStale(u.waiter.Core, from.Raw, edit.After)
	if err == nil && u.Check != nil {
		err = u.Check(from.Before, edit.After)
	}
	if err != nil {
		return u.named(err)
	}
	return nil
}

// wait waits for a lock that an image shows, and says then that the item must be read again.
func (u *update) wait(ctx context.Context, image ddb.Item) error {
	if u.FailFast {
		return lock.ErrContended
	}
	if err := u.waiter.WaitOrBreak(ctx, image); err != nil {
		return err
	}
	return errAgain
}

// want is what an edit asks for.
type want int

const (
	write   want = iota
	nothing      // a new item that is not wanted after all
	asItIs       // the item without a change
)

func (u *update) wants(edit typed.Edit, image ddb.Item) want {
	switch hidden := u.waiter.Core.Hidden(image); {
	case edit.Remove && hidden:
		return nothing
	case !edit.Remove && !hidden && edit.Diff.Empty() && (u.Count == nil || u.Count() == 0):
		return asItIs
	}
	return write
}

// fate is what became of one write.
type fate int

const (
	committed fate = iota // it is applied
	failed                // it is not, or nobody knows, for it was not answered
	lost                  // others wrote first, or hold the item
	foundMade             // no verdict, but the item remembers the change
	undecided             // no verdict: others may have covered its traces
)

// fate judges a write, based on an image, by its result.
func (u *update) fate(ctx context.Context, image ddb.Item, edit typed.Edit, res ddb.Result) fate {
	verdict := protocol.Undecided
	switch res.Outcome {
	case ddb.Applied:
		return committed
	case ddb.Refused:
		return failed
	case ddb.Condition:
		verdict = u.waiter.Doubt.AsRead(u.id, u.refusal(image, res.Image, edit.Remove))
	}
	if verdict == protocol.Undecided {
		verdict = u.waiter.Witnessed()
	}
	switch {
	case verdict == protocol.Committed:
		return committed
	case verdict == protocol.Lost:
		return lost
	case res.Outcome == ddb.Unknown:
		return failed
	case u.IsMade(ctx, u.waiter.Core, res.Image):
		return foundMade
	}
	return undecided
}
