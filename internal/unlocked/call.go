package unlocked

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Call is one call on one item. All that writes passes through Do.
type Call struct {
	lock.Waiter
	Doubt lockless.Doubt     // about what the call has sent
	seen  *protocol.Evidence // of the write that it sends, in what the process gets to see

	exclusive *protocol.OnceID // see Exclusive
	behind    ddb.Item         // the last image in which a lock alone refused such a write

	stood  bool       // it has waited in a queue, which has recorded for how long
	stands bool       // where others wait in a queue, the call does too: it is inside Do, which gives the lock back
	turn   *lock.Lock // the lock that it was given there; nil: it has none
	fresh  ddb.Item   // see Fresh

	longest *time.Timer // of the turn

	breaks int // expired holds that were ended
}

// Do runs a call to its end. Every call that writes passes through here, with
// whatever it ends, so that no exit forgets what was sent before it.
func (t *Call) Do(ctx context.Context, call func() error) error {
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
		err = lock.Why(err)
		err = lock.UnknownOutcome(t.Core.Table, t.Key, ddb.Join(err, ddb.CtxError(ctx))) // why nobody looked any further
	}
	return err
}

// SendUntilJudged runs a call that sends one write after another until one is
// applied, or judge says of the image that refused one that the call is decided. All
// carry the id, unless that is nobody's.
func (t *Call) SendUntilJudged(ctx context.Context, id protocol.WriteID, send func() (ddb.Result, error), judge func(image ddb.Item) (decided bool, err error)) error {
	t.Expect(id, nil)
	err := t.Do(ctx, func() error {
		for {
			res, err := send()
			if err != nil || res.Outcome == ddb.Applied {
				return err
			}
			if res.Outcome != ddb.Condition {
				return lock.Failed(t.Core, t.Key, res)
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

// CheckShape refuses an image with foreign attributes under the library's names:
// or of another type than the table's: whoever meets one writes nothing.
func (t *Call) CheckShape(image ddb.Item) error {
	_, err := t.Lock(image)
	return err
}

// CheckCounted refuses an image whose version cannot be counted on.
func (t *Call) CheckCounted(image ddb.Item) error {
	if err := lockless.CheckCounted(t.Core, image); err != nil {
		return lock.Unfit(t.Core, t.Key, err)
	}
	return nil
}

// WaitOrBreak is called by a writer without the lock whose write failed on an item
// that somebody holds. It returns nil when the write is worth another try.
func (t *Call) WaitOrBreak(ctx context.Context, image ddb.Item) error {
	t.endTurn(ctx) // it was in time for nothing
	l, err := t.Lock(image)
	if err != nil {
		return err
	}
	if t.exclusive != nil && image[t.Core.Attr.LockStub] == nil { // what is nothing but a lock goes with it
		t.behind = image
	}
	switch live := l.Live(t.Clock(), t.Skew); {
	case live && t.stands && t.QueueWaits(image):
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
		t.Awaits = lock.Locked(t.Core, t.Key, l)
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
	t.Awaits = nil
	if t.breaks++; t.breaks > 1 { // holds that are over when they begin: no hot loop
		t.Backoff(ctx, time.Time{})
	}
	return nil
}

// WaitAfterConflict notes that others wrote first, in each of n tries, and returns the
// error that says so.
func (t *Call) WaitAfterConflict(n int) error {
	t.Awaits = &repo.ConflictError{Table: t.Core.Name, Key: t.Key, Attempts: n}
	return t.Awaits
}

// Waited reports whether the call waited for others.
func (t *Call) Waited() bool { return !t.Began.IsZero() || t.stood }

// Expect begins to look for a write that the call is about to send, which demands the
// ring base, in all that the process gets to see: until the next one, or the call's end.
func (t *Call) Expect(id protocol.WriteID, base []byte) {
	t.seen.End()
	t.seen = t.Core.Expect(id, t.Raw, base)
}

// Seen is what the process has seen of that write; the image is no one's to change.
func (t *Call) Seen() (protocol.Verdict, ddb.Item) { return t.seen.Verdict() }

// Witnessed is the verdict of Seen on a write that is bound to what it has read. Lost
// ends the doubt.
func (t *Call) Witnessed() protocol.Verdict {
	v, _ := t.Seen()
	if v == protocol.Lost {
		t.Doubt.Settle()
	}
	return v
}

// asUnknown turns an error that says "nothing was written" into what is true of a
// call in doubt.
func (t *Call) asUnknown(err error) error {
	if err == nil || t.Doubt.End() == protocol.Lost || errors.Is(err, repo.ErrOutcomeUnknown) {
		return err
	}
	return lock.UnknownOutcome(t.Core.Table, t.Key, fmt.Errorf("an attempt had no clear answer, and may have been applied or may be yet: %w", err))
}

// Undecided is the error of a call in doubt that finds no evidence; found says
// what it finds instead.
func (t *Call) Undecided(found string) error {
	return lock.UnknownOutcome(t.Core.Table, t.Key, errors.New("an attempt had no clear answer, and "+found))
}

// What is found in the place of evidence.
const (
	FoundOthers  = "others have changed the item"
	FoundNothing = "the item is gone"
)
