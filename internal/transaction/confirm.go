package transaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// An error of a closure comes from what it has read. It is returned where that was so at
// one moment, and is no error else: the closure runs again, or the error is that nobody
// can say.

// confirm decides what becomes of the error that a run's closure has returned.
func (c *call) confirm(ctx context.Context, tx *Tx, said error) (again bool, err error) {
	touched := tx.touched()
	if len(touched) <= 1 && len(c.unconfirmed(touched)) == 0 { // read at one moment, or held, and not only assumed
		return false, said
	}
	end := ddb.CtxError(ctx)
	if end != nil && len(c.unconfirmed(touched)) > 0 {
		return false, tx.unsure(end, said)
	}
	if end == nil {
		switch err := c.verify(ctx, touched); {
		case errors.Is(err, errAgain):
			return true, nil
		case err != nil:
			return false, tx.unsure(err, said)
		}
	}
	if lost := c.giveBack(ctx); lost != nil {
		return false, tx.unsure(lost, said)
	}
	return false, said
}

// run runs the closure. A panic of it is its caller's, unless it comes from what was not
// there at one moment: then the closure runs again, as after an error. It is looked at, and
// goes on, where it was caught: its trace shows where it came from.
func (c *call) run(ctx context.Context, tx *Tx, fn func(context.Context, *Tx) error) (torn, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if torn = c.torn(ctx, tx); torn == nil {
			panic(p)
		}
	}()
	return nil, tx.run(fn)
}

// torn is errAgain, or that others have written in each try, where items were not read as
// they were at one moment; nil: they were, or nobody can say.
func (c *call) torn(ctx context.Context, tx *Tx) error {
	touched := tx.touched()
	over := ctx.Err() != nil || slices.ContainsFunc(c.held(), func(e *entry) bool { return e.turn.Lock.Over() })
	if over || len(touched) <= 1 && len(c.unconfirmed(touched)) == 0 {
		return nil
	}
	err := c.verify(ctx, touched)
	if errors.Is(err, errAgain) || errors.Is(err, repo.ErrConflict) {
		return err
	}
	return nil
}

// lostAt is what becomes of a run that has lost a lock.
func (tx *Tx) lostAt(lost, said error) error {
	switch {
	case said == nil:
		return lost
	case len(tx.touched()) <= 1:
		return because(lost, said)
	}
	return tx.unsure(lost, said)
}

// giveBack gives all locks back. A lock that was held until now has kept its item as it
// was read: an error is of one that others have broken, or that does not tell.
func (c *call) giveBack(ctx context.Context) error {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	var failed []Failure
	for _, e := range c.held() {
		if err := e.release(ctx, c); err != nil {
			failed = append(failed, e.failure(e.unreleased(err)))
		}
	}
	return fail(failed...)
}

// unreleased is the error of a release behind which nothing was written, whatever became of
// the lock. What was lost says so itself.
func (e *entry) unreleased(err error) error {
	lost := errors.Is(err, repo.ErrLockLost)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		err = lock.Unwritten(e.core.Table, e.key, err)
		if lost {
			err = fmt.Errorf("%w: %w", repo.ErrLockLost, err)
		}
	}
	return err
}

// unsure is the error of a run of which nobody knows whether what it has read was there
// at one moment. What its closure said is told, but is not the error: unless it is a
// request's that has failed, or the end of a context.
func (tx *Tx) unsure(why, said error) error {
	if tx.isFailure(said) {
		return said
	}
	note := fmt.Errorf("what was read could not be confirmed, of which the closure has said: %v", said) //nolint:errorlint // it is not to be found in the chain
	if e, ok := why.(*Error); ok {                                                                      //nolint:errorlint // only as it was made
		return because(why, ddb.Join(e.Why, note))
	}
	return fmt.Errorf("%w: %w", why, note)
}

// failed notes an error of an operation that says nothing about what was read.
func (tx *Tx) failed(err error) error {
	if err != nil {
		tx.mu.Lock()
		defer tx.mu.Unlock()
		tx.failures = append(tx.failures, err)
	}
	return err
}

// isFailure reports whether an error is one of those, or the end of the context.
func (tx *Tx) isFailure(said error) bool {
	if end := tx.caller.Err(); end != nil && errors.Is(said, end) {
		return true
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	for _, err := range tx.failures {
		if errors.Is(said, err) {
			return true
		}
	}
	return false
}
