package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Waiter is one call on one item. It waits for the item, sends the call's writes,
// and remembers what the call's error must say: for whom it waited, and whether
// something that it sent may have been applied.
type Waiter struct {
	Core *protocol.Core
	Key  repo.Key
	Raw  ddb.Item // the primary key, encoded
	Settings
	Doubt protocol.Doubt     // about what the call has sent
	seen  *protocol.Evidence // of the write that it sends, in what the process gets to see

	exclusive *protocol.OnceID // see Exclusive
	behind    ddb.Item         // the last image in which a lock alone refused such a write

	stood  bool     // it has waited in a queue, which has recorded for how long
	stands bool     // where others wait in a queue, the call does too: it is inside Do, which gives the lock back
	turn   *Lock    // the lock that it was given there; nil: it has none
	fresh  ddb.Item // see Fresh

	backoff ddb.Backoff
	tries   int       // holds that were found in the way
	breaks  int       // expired holds that were ended
	Began   time.Time // of the first sleep
	awaits  error     // what the call waited for last; nil: for nobody
}

// Do runs a call to its end. Every call that writes passes through here, with
// whatever it ends, so that no exit forgets what was sent before it.
func (t *Waiter) Do(ctx context.Context, call func() error) error {
	defer t.RecordWait(ctx)
	defer func() { t.seen.End() }()
	t.stands = true
	defer func() { t.endTurn(ctx) }()
	err := t.ExplainEnd(ctx, call())
	if !t.excluded(ctx, err) {
		t.Doubt.Sent(false)
	}
	err = t.asUnknown(err)
	if end := ctx.Err(); end != nil && errors.Is(err, repo.ErrOutcomeUnknown) && !errors.Is(err, end) {
		var u *unknown
		if errors.As(err, &u) {
			err = u.why
		}
		err = UnknownOutcome(t.Core.Table, t.Key, ddb.Join(err, ddb.CtxError(ctx))) // why nobody looked any further
	}
	return err
}

// SendUntilJudged runs a call that sends one write after another until one is
// applied, or judge says of the image that refused one that the call is decided. All
// carry the id, unless that is nobody's.
func (t *Waiter) SendUntilJudged(ctx context.Context, id protocol.WriteID, send func() (ddb.Result, error), judge func(image ddb.Item) (decided bool, err error)) error {
	t.Expect(id, nil)
	err := t.Do(ctx, func() error {
		for {
			res, err := send()
			if err != nil || res.Outcome == ddb.Applied {
				return err
			}
			if res.Outcome != ddb.Condition {
				return Failed(t.Core, t.Key, res)
			}
			if decided, err := judge(res.Image); decided || err != nil {
				return err
			}
		}
	})
	if v, _ := t.Seen(); v == protocol.Committed && errors.Is(err, repo.ErrOutcomeUnknown) {
		return nil
	}
	return err
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

// CheckShape refuses an image with foreign attributes under the library's names:
// or of another type than the table's: whoever meets one writes nothing.
func (t *Waiter) CheckShape(image ddb.Item) error {
	_, err := t.Lock(image)
	return err
}

// CheckCounted refuses an image whose version cannot be counted on.
func (t *Waiter) CheckCounted(image ddb.Item) error {
	if err := t.Core.CheckCounted(image); err != nil {
		return Unfit(t.Core, t.Key, err)
	}
	return nil
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

// WaitOrBreak is called by a writer without the lock whose write failed on an item
// that somebody holds. It returns nil when the write is worth another try.
func (t *Waiter) WaitOrBreak(ctx context.Context, image ddb.Item) error {
	t.endTurn(ctx) // it was in time for nothing
	l, err := t.Lock(image)
	if err != nil {
		return err
	}
	if t.exclusive != nil && image[t.Core.Attr.LockStub] == nil { // what is nothing but a lock goes with it
		t.behind = image
	}
	switch live := l.Live(t.Clock(), t.Skew); {
	case live && t.stands && t.queueWaits(l, image):
		return t.stand(ctx, l)
	case live:
		return t.WaitFor(ctx, l)
	}
	in, err := t.Core.Break(t.Raw, image)
	if err != nil {
		return err
	}
	res := t.Core.Update(ctx, in, ddb.Options{})
	switch res.Outcome {
	case ddb.Refused:
		t.awaits = Locked(t.Core, t.Key, l)
		return res.Err
	case ddb.Condition:
		// The hold has ended without us. Who came after it holds the item.
		if now, err := t.Lock(res.Image); err == nil && now.Live(t.Clock(), t.Skew) {
			return t.WaitFor(ctx, now)
		}
	}
	if res.Outcome == ddb.Applied {
		t.Core.Observe.Broken(ctx, t.Kind, telemetry.Expired, slog.String("key", t.Key.String()), slog.String("from", l.Owner()), slog.Int64("lost", l.Held))
	}
	// Nobody holds the item now, or the next try tells. That is no try in vain.
	t.awaits = nil
	if t.breaks++; t.breaks > 1 { // holds that are over when they begin: no hot loop
		t.Backoff(ctx, time.Time{})
	}
	return nil
}

// WaitFor waits for a holder, or says why not.
func (t *Waiter) WaitFor(ctx context.Context, l stored.Record) error {
	end := l.Until
	if l.Timed {
		end = end.Add(t.Skew)
	}
	return t.wait(ctx, l, func() { t.Backoff(ctx, end) })
}

// WaitToPoll is called by one who waits in a queue before it looks at the item again:
// it sleeps for d, or says why not.
func (t *Waiter) WaitToPoll(ctx context.Context, l stored.Record, d time.Duration) error {
	return t.wait(ctx, l, func() { t.begin(); t.Core.Sleep(ctx, d) })
}

// wait waits for the holder l, by sleep.
func (t *Waiter) wait(ctx context.Context, l stored.Record, sleep func()) error {
	t.awaits = Locked(t.Core, t.Key, l)
	if t.tries++; t.Wait.Attempts > 0 && t.tries >= t.Wait.Attempts {
		return t.awaits
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
		return ddb.Join(t.awaits, end)
	}
	return ddb.Join(t.awaits, ddb.Waited(time.Since(t.Began), end))
}

// WaitAfterConflict notes that others wrote first, in each of n tries, and returns the
// error that says so.
func (t *Waiter) WaitAfterConflict(n int) error {
	t.awaits = &repo.ConflictError{Table: t.Core.Name, Key: t.Key, Attempts: n}
	return t.awaits
}

// ExplainEnd adds, to an error that says no more than that ctx ended, what the call
// had been waiting for.
func (t *Waiter) ExplainEnd(ctx context.Context, err error) error {
	if err == nil || t.awaits == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) || saysWhy(err) {
		return err
	}
	return t.outwaited(err)
}

// saysWhy reports whether an error tells what became of the call, and not only
// that its context ended.
func saysWhy(err error) bool {
	return errors.Is(err, repo.ErrLocked) || errors.Is(err, repo.ErrConflict) || errors.Is(err, repo.ErrOutcomeUnknown)
}

// Waited reports whether the call waited for others.
func (t *Waiter) Waited() bool { return !t.Began.IsZero() || t.stood }

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
