package lock

import (
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Failed turns a refused or unknown write into the caller's error.
func Failed(core *protocol.Core, key repo.Key, res ddb.Result) error {
	if res.Outcome == ddb.Unknown {
		return UnknownOutcome(core.Table, key, res.Err)
	}
	if res.Err == nil {
		return nil
	}
	return fmt.Errorf("item %v: %w", key, res.Err) // which names the table
}

// UnknownOutcome says that a write has no verdict, and why: callers who know
// more than that no evidence is left say it.
func UnknownOutcome(core *stored.Table, key repo.Key, why error) error {
	if why == nil {
		why = errNoEvidence
	}
	return fmt.Errorf("%s: %w", core.ItemName(key), NoVerdict(why))
}

// NoVerdict is UnknownOutcome of an item that others name. why may be the end of a context,
// with the cause that another lock was lost: that is no verdict on the write.
func NoVerdict(why error) error { return &unknown{why} }

var errNoEvidence = errors.New("the item shows no evidence of the write, nor against it")

// unknown is a write without a verdict, and why it has none.
type unknown struct{ why error }

func (u *unknown) Error() string { return repo.ErrOutcomeUnknown.Error() + ": " + u.why.Error() }

// Is passes on what the reason is, but not its claim that nothing was written:
// who asks for a lock or a conflict first would repeat the call.
func (u *unknown) Is(target error) bool {
	if target == repo.ErrOutcomeUnknown {
		return true
	}
	for _, claim := range unwritten {
		if target == claim {
			return false
		}
	}
	return errors.Is(u.why, target)
}

// As is to Is as errors.As is to errors.Is.
func (u *unknown) As(target any) bool {
	switch target.(type) {
	case **repo.LockedError, **repo.ConflictError, **repo.ConditionError:
		return false
	}
	return errors.As(u.why, target)
}

// unwritten are the errors that say that nothing was written.
var unwritten = []error{
	repo.ErrNotFound, repo.ErrExists, repo.ErrConflict, repo.ErrStale, repo.ErrLocked, repo.ErrLockExpired,
	repo.ErrLockLost, repo.ErrReleased, repo.ErrNotHeld, repo.ErrFixed, repo.ErrTooLarge, repo.ErrCondition, repo.ErrMismatch, repo.ErrConfig, ErrContended,
}

// Unwritten is the error of a write whose verdict was found after all: nothing
// was written.
func Unwritten(core *stored.Table, key repo.Key, err error) error {
	return fmt.Errorf("%s: nothing was written: %w", core.ItemName(key), Why(err))
}

// Why is why a write has no verdict, and another error as it is.
func Why(err error) error {
	var u *unknown
	if errors.As(err, &u) {
		return u.why
	}
	return err
}

// ErrContended is why a call ended that makes way for others. Nothing was written.
var ErrContended = errors.New("others want the item")
