package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Waiter is one call that waits for an item. It remembers what the call's error must say:
// for whom it waited, and whether something that it sent may have been applied.
type Waiter struct {
	Core *protocol.Core
	Key  repo.Key
	Raw  ddb.Item // the primary key, encoded
	Settings

	backoff ddb.Backoff
	tries   int       // holds that were found in the way
	Began   time.Time // of the first sleep
	Awaits  error     // what the call waited for last; nil: for nobody
}

// Backoff sleeps after a try that failed because of others; end is when they are
// done at the latest.
func (t *Waiter) Backoff(ctx context.Context, end time.Time) {
	t.begin()
	t.Core.Sleep(ctx, t.backoff.Next(t.Clock(), end))
}

// begin notes when the waiting began.
func (t *Waiter) begin() {
	if t.Began.IsZero() {
		t.Began = time.Now() // for how long it waits, whatever the clock does
		t.backoff = ddb.Backoff{Min: t.Wait.Min, Max: t.Wait.Max}
	}
}

// Lock parses the lock attributes of an image, of which nothing may be foreign
// that has one of the library's names.
func (t *Waiter) Lock(image ddb.Item) (stored.Record, error) {
	if !t.Core.Absent(image) {
		if err := t.Core.CheckType(image); err != nil {
			return stored.Record{}, err
		}
	}
	l, err := t.Core.ParseChecked(image)
	if err != nil {
		return stored.Record{}, Unfit(t.Core, t.Key, err)
	}
	return l, nil
}

// Unfit is the error of an item that is not what its table has.
func Unfit(core *protocol.Core, key repo.Key, err error) error {
	return &repo.ItemError{Table: core.Name, Key: key, Err: fmt.Errorf("%w: %w", repo.ErrSchema, err)}
}

// ParseRecord parses the lock attributes of an item's image.
func ParseRecord(core *protocol.Core, key repo.Key, image ddb.Item) (stored.Record, error) {
	l, err := core.ParseRecord(image)
	if err != nil {
		return l, Unfit(core, key, err)
	}
	return l, nil
}

// Locked is the error that tells who holds an item.
func Locked(core *protocol.Core, key repo.Key, l stored.Record) error {
	e := &repo.LockedError{Table: core.Name, Key: key, Owner: l.Owner(), Until: l.Until, Token: l.Held}
	if l.Endless() {
		e.Until = time.Time{}
	}
	return e
}

// WaitFor waits for a holder, or says why not.
func (t *Waiter) WaitFor(ctx context.Context, l stored.Record) error {
	end := l.Until
	if l.Timed {
		end = end.Add(t.Skew)
	}
	return t.WaitBy(ctx, l, func() { t.Backoff(ctx, end) })
}

// WaitToPoll is called by one who waits in a queue before it looks at the item again:
// it sleeps for d, or says why not.
func (t *Waiter) WaitToPoll(ctx context.Context, l stored.Record, d time.Duration) error {
	return t.WaitBy(ctx, l, func() { t.begin(); t.Core.Sleep(ctx, d) })
}

// WaitBy waits for the holder l, by sleep.
func (t *Waiter) WaitBy(ctx context.Context, l stored.Record, sleep func()) error {
	t.Awaits = Locked(t.Core, t.Key, l)
	if t.tries++; t.Wait.Attempts > 0 && t.tries >= t.Wait.Attempts {
		return t.Awaits
	}
	sleep()
	if ctx.Err() != nil {
		return t.outwaited(ddb.CtxError(ctx))
	}
	return nil
}

// outwaited is the error of a call whose context has ended: what it waited for, and
// for how long.
func (t *Waiter) outwaited(end error) error {
	if t.Began.IsZero() {
		return ddb.Join(t.Awaits, end)
	}
	return ddb.Join(t.Awaits, ddb.Waited(time.Since(t.Began), end))
}

// ExplainEnd adds, to an error that says no more than that ctx ended, what the call
// had been waiting for.
func (t *Waiter) ExplainEnd(ctx context.Context, err error) error {
	if err == nil || t.Awaits == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) || saysWhy(err) {
		return err
	}
	return t.outwaited(err)
}

// saysWhy reports whether an error tells what became of the call, and not only
// that its context ended.
func saysWhy(err error) bool {
	return errors.Is(err, repo.ErrLocked) || errors.Is(err, repo.ErrConflict) || errors.Is(err, repo.ErrOutcomeUnknown)
}

// RecordWait records how long the call waited, if it did.
func (t *Waiter) RecordWait(ctx context.Context) {
	if !t.Began.IsZero() {
		t.Core.Observe.Waited(ctx, t.Kind, telemetry.ToProcess, time.Since(t.Began))
	}
}

// NotFound says that there is no item.
func NotFound(key repo.Key, table string) error {
	return fmt.Errorf("%w: %v in table %q", repo.ErrNotFound, key, table)
}
