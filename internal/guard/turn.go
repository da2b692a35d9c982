package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Turn is one call's waiting for its turn on one item.
type Turn struct {
	Core *ddb.Core
	Key  repo.Key
	Raw  ddb.Item // the primary key, encoded
	Settings

	backoff ddb.Backoff
	tries   int
	began   time.Time // of the first sleep
	last    ddb.Lock  // the hold that was waited for last
}

// Pause sleeps after a try that failed because of others; end is when they are
// done at the latest.
func (t *Turn) Pause(ctx context.Context, end time.Time) {
	t.begin()
	ddb.Pause(ctx, t.backoff.Next(t.Clock(), end))
}

// begin notes when the waiting began.
func (t *Turn) begin() {
	if t.began.IsZero() {
		t.began = t.Clock()
		t.backoff = ddb.Backoff{Min: t.Wait.Min, Max: t.Wait.Max}
	}
}

// Lock parses the lock attributes of an image, of which nothing may be foreign
// that has one of the library's names.
func (t *Turn) Lock(image ddb.Item) (ddb.Lock, error) {
	if err := t.CheckShape(image); err != nil {
		return ddb.Lock{}, err
	}
	return ParseLock(t.Core, t.Key, image)
}

// CheckShape refuses an image with foreign attributes under the library's names:
// whoever meets one writes nothing.
func (t *Turn) CheckShape(image ddb.Item) error {
	if err := t.Core.CheckShape(image); err != nil {
		return fmt.Errorf("%w: item %v in table %q: %w", repo.ErrSchema, t.Key, t.Core.Table, err)
	}
	return nil
}

// ParseLock parses the lock attributes of an item's image.
func ParseLock(core *ddb.Core, key repo.Key, image ddb.Item) (ddb.Lock, error) {
	l, err := core.ParseLock(image)
	if err != nil {
		return l, fmt.Errorf("%w: item %v in table %q: %w", repo.ErrSchema, key, core.Table, err)
	}
	return l, nil
}

// Locked is the error that tells who holds an item.
func Locked(key repo.Key, l ddb.Lock) error {
	e := &repo.LockedError{Key: key, Owner: l.Owner(), Until: l.Until, Token: l.Held}
	if l.Endless() {
		e.Until = time.Time{}
	}
	return e
}

// Yield is called by a writer without the lock whose write failed on an item
// that somebody holds. It returns nil when the write is worth another try.
func (t *Turn) Yield(ctx context.Context, image ddb.Item) error {
	l, err := t.Lock(image)
	if err != nil {
		return err
	}
	if l.Live(t.Clock(), t.Skew) {
		return t.Sleep(ctx, l)
	}
	in, err := t.Core.Break(t.Raw, image)
	if err != nil {
		return repo.Classify(err)
	}
	// Whether we broke it or the item changed meanwhile: the next try tells.
	if res := t.Core.Update(ctx, in, ddb.Options{}); res.Outcome == ddb.Refused {
		return repo.Classify(res.Err)
	}
	return t.count(l)
}

// Sleep waits for a holder, or says why not.
func (t *Turn) Sleep(ctx context.Context, l ddb.Lock) error {
	if t.Fail {
		return Locked(t.Key, l)
	}
	end := l.Until
	if l.Timed {
		end = end.Add(t.Skew)
	}
	return t.wait(ctx, l, func() { t.Pause(ctx, end) })
}

// Look is called by one who waits in a queue before it looks at the item again:
// it sleeps for d, or says why not.
func (t *Turn) Look(ctx context.Context, l ddb.Lock, d time.Duration) error {
	return t.wait(ctx, l, func() { t.begin(); ddb.Pause(ctx, d) })
}

// wait waits for the holder l, by sleep.
func (t *Turn) wait(ctx context.Context, l ddb.Lock, sleep func()) error {
	if err := t.count(l); err != nil {
		return err
	}
	t.last = l
	sleep()
	if ctx.Err() != nil {
		return ddb.Because(Locked(t.Key, l), ddb.CtxError(ctx))
	}
	return nil
}

func (t *Turn) count(l ddb.Lock) error {
	if t.tries++; t.Wait.Attempts > 0 && t.tries >= t.Wait.Attempts {
		return Locked(t.Key, l)
	}
	return nil
}

// Ended adds, to an error that says no more than that ctx ended, for whom the
// call had been waiting.
func (t *Turn) Ended(ctx context.Context, err error) error {
	if err == nil || t.began.IsZero() || ctx.Err() == nil || !errors.Is(err, ctx.Err()) ||
		errors.Is(err, repo.ErrLocked) || errors.Is(err, repo.ErrOutcomeUnknown) {
		return err
	}
	return ddb.Because(Locked(t.Key, t.last), err)
}

// Done records how long the call waited, if it did.
func (t *Turn) Done(ctx context.Context) {
	if !t.began.IsZero() {
		t.Core.Observe.Waited(ctx, t.Core.Table, t.Clock().Sub(t.began))
	}
}

// Failed turns a refused or unknown write into the caller's error.
func Failed(key repo.Key, res ddb.Result) error {
	if res.Outcome == ddb.Unknown {
		return UnknownOutcome(key, res.Err)
	}
	return repo.Classify(res.Err)
}

// UnknownOutcome says that no evidence is left.
func UnknownOutcome(key repo.Key, err error) error {
	if err == nil {
		err = errOthers
	}
	return fmt.Errorf("item %v: %w", key, &unknown{err})
}

var errOthers = errors.New("an answer was lost, and others changed the item since")

// unknown is a write without a verdict, and why it has none.
type unknown struct{ why error }

func (u *unknown) Error() string        { return repo.ErrOutcomeUnknown.Error() + ": " + u.why.Error() }
func (u *unknown) Is(target error) bool { return target == repo.ErrOutcomeUnknown }
func (u *unknown) Unwrap() error        { return u.why }

// Unwritten is the error of a write whose verdict was found after all: nothing
// was written.
func Unwritten(key repo.Key, err error) error {
	var u *unknown
	if errors.As(err, &u) {
		err = u.why
	}
	return repo.Classify(fmt.Errorf("item %v: nothing was written: %w", key, err))
}

// NotFound says that there is no item.
func NotFound(key repo.Key, table string) error {
	return fmt.Errorf("%w: %v in table %q", repo.ErrNotFound, key, table)
}
