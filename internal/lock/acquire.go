package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Request says how an acquisition is meant.
type Request struct {
	Try bool // one try
	// What to do about a key without an item: by default ErrNotFound.
	Stub bool // lock it by an item that readers do not see
	Row  bool // make the item in the same request: the item is nothing but its lock
	// NoTTL lets TTL not remove the row from then on. Not of a fair lock.
	NoTTL bool
	// Claim, if set, makes what such a row is taken for.
	Claim func() *protocol.Claim
	// Orphan is a hold that an earlier write of this process may have left: ours
	// if it is there.
	Orphan *Orphan
	// OnWait is told whom the acquisition waits for; nil: nobody asks.
	OnWait func(stored.Record)
	// Needless, if set, is the error that ends the waiting for a lock that the image of
	// its item makes needless.
	Needless func(image ddb.Item) error
}

// stubLife is how long after its lease DynamoDB's TTL may remove a stub that
// everybody forgot.
const stubLife = 24 * time.Hour

// forgotten is when TTL may remove a stub whose hold ends at a time; where clocks may be
// wrong by more than its life, never.
func (c *Config) forgotten(until time.Time) time.Time {
	if c.Clockless {
		return ddb.Never()
	}
	return until.Add(stubLife)
}

// acquiring is one call of Acquire. A request that had no answer is not sent
// again: every try has an id of its own, for a late copy of an earlier one must
// not pass for the hold that we have. Tries without an answer are remembered:
// their lock is ours if they landed. Only an enqueue is repeated as it is, for
// its entry tells whether it has landed.
type acquiring struct {
	locker *Locker
	Request
	Waiter
	queue      *queued   // the queue to wait in; nil: it waits by trying again
	stub       bool      // the next try makes a stub: nothing was there
	id         string    // of the present try
	sent       time.Time // before it was sent first, and before its end was reckoned
	item       ddb.Item  // as it was when the lock was taken
	first      int64     // the token if the item was never locked before
	seen       int64     // the greatest token of another holder that an answer has shown
	mayHold    unansweredTries
	unanswered int // tries without an answer, in a row
	resend     ddb.Backoff
	observed   observation
	giving     context.Context // for all that it gives back; nil until it does
	given      context.CancelFunc
}

// Acquire takes the lock of an item, waiting as long as ctx allows, and returns
// the item as it was stored then. It waits in the queue on the item, if the
// locker is fair and a queue can form, else by trying again.
func (t *Locker) Acquire(ctx context.Context, key repo.Key, raw ddb.Item, how Request) (*Lock, ddb.Item, error) {
	wait := t.Wait
	if how.Try {
		wait.Attempts = 1
	}
	a := &acquiring{locker: t, Request: how, resend: ddb.Backoff{Min: t.Wait.Min, Max: t.Wait.Max}, Waiter: Waiter{
		Core: t.Core, Key: key, Raw: raw,
		Settings: Settings{Wait: wait, Skew: t.Skew, Clock: t.Clock, Kind: t.Kind},
	}}
	defer a.finish(ctx)
	if how.Orphan != nil {
		a.mayHold = unansweredTries{how.Orphan.id: how.Orphan.sent}
	}
	if t.Fair && !how.Try {
		a.queue = &queued{acquiring: a}
	}
	for {
		in, opt := a.request()
		send := t.Core.Update
		if a.queue != nil && !a.stub {
			send = a.queue.enter
		}
		held, err := a.answered(ctx, send(ctx, in, opt))
		switch {
		case held != nil:
			return held, a.item, nil
		case errors.Is(err, errAgain):
			ddb.Sleep(ctx, a.resend.Next(time.Now(), time.Time{}))
		case errors.Is(err, errNoQueue):
			a.queue = nil
		case err != nil:
			freed := a.releaseUnanswered(ctx)
			return nil, nil, a.unlessFreed(freed, a.ExplainEnd(ctx, err))
		}
	}
}

// errAgain asks for another try after one that had no answer.
var errAgain = errors.New("again")

// finish ends the call.
func (a *acquiring) finish(ctx context.Context) {
	a.RecordWait(ctx)
	if a.given != nil {
		a.given()
	}
}

// request makes the next request: a try to take the lock, or an enqueue.
func (a *acquiring) request() (*dynamodb.UpdateItemInput, ddb.Options) {
	if a.queue != nil && !a.stub {
		return a.queue.request()
	}
	t := a.newTry()
	t.Skew, t.Row, t.NoTTL, t.Clockless, t.Seen = a.Skew, a.Row, a.NoTTL, a.locker.Clockless, a.seen
	t.Watched = a.observed.expired(a.watchTime())
	if a.Claim != nil {
		t.Claim = a.Claim()
	}
	a.first = t.Floor()
	opt := ddb.Options{Timeout: a.locker.Lease / 3, AwaitAnswer: true, Once: true, Holding: true, // others of the process wait behind it
		OnItem:  a.stub || a.Row && t.Watched == nil,
		Absence: !a.Stub, // else the write of a stub finds out by itself
		Stands:  a.notTaken,
	}
	if a.stub {
		return a.Core.Stub(a.Raw, t, a.locker.forgotten(t.Until)), opt
	}
	return a.Core.Acquire(a.Raw, t), opt
}

// newTry begins a request with an id of its own.
func (a *acquiring) newTry() protocol.Acquire {
	// The deadline counts from before the end was reckoned: a process may stand
	// still between any two lines.
	a.sent = time.Now()
	now := a.Clock()
	a.id = stored.NewIDAt(a.locker.Owner, now)
	return protocol.Acquire{ID: a.id, Now: now, Until: a.locker.until(now), Lease: a.locker.Lease, Hidden: a.Stub}
}

// answered draws the conclusion from the answer to a request. Neither a lock nor an
// error asks for the next request.
func (a *acquiring) answered(ctx context.Context, res ddb.Result) (*Lock, error) {
	if a.queue != nil && !a.stub {
		return a.queue.answered(ctx, res)
	}
	if res.Outcome != ddb.Unknown {
		a.unanswered = 0
	}
	switch res.Outcome {
	case ddb.Applied:
		return a.hold(ctx, res.Item, a.sent)
	case ddb.Condition:
		return a.refused(ctx, res.Image)
	case ddb.Unknown:
		a.mayHold = a.mayHold.and(a.id, a.sent, a.locker.landing())
		// Every try is a request of its own; what the client's policy allows for
		// one is allowed in a row.
		if a.unanswered++; !res.Unread && ctx.Err() == nil && (res.Limit == 0 || a.unanswered < res.Limit) {
			return nil, errAgain
		}
		// Whether the lock was taken is not known, but no data is in doubt, and
		// releaseUnanswered gives it back: the caller has certainly not changed anything.
		return nil, a.noAnswer(ctx, "request for its lock", res.Err)
	}
	return nil, res.Err
}

// noAnswer is the error of a request without an answer. A context that has ended since
// is why no other is sent.
func (a *acquiring) noAnswer(ctx context.Context, to string, err error) error {
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		err = ddb.Join(ddb.CtxError(ctx), err)
	}
	return fmt.Errorf("%s: no answer to the %s: %w", a.Core.ItemName(a.Key), to, err)
}

// hold makes the handle of a lock that was taken by a try of the given time. A
// lock that the caller will not have is given back.
func (a *acquiring) hold(ctx context.Context, image ddb.Item, sent time.Time) (*Lock, error) {
	end := sent.Add(a.locker.Lease)
	l, err := a.Lock(image)
	if err == nil && l.Held == 0 {
		err = fmt.Errorf("%w: %s: attribute %q is missing", repo.ErrSchema, a.Core.ItemName(a.Key), a.Core.Attr.LockHeld)
	}
	if err == nil && a.locker.late(end, l.Until) {
		err = errAgain // its holder could do nothing with it
	}
	if err != nil {
		a.releaseTaken(ctx)
		return nil, err
	}
	h := a.newLock(image, l, end)
	h.Start(ctx)
	if l.Stolen == l.Held-1 && l.Held != a.first { // the first lock of all begins like this, too
		a.takenOver(ctx, h, l.Stolen)
	}
	return h, nil
}

// newLock makes the handle of a lock that is ours; end is when others may take it over, on the own clock. Nothing
// looks after it yet.
func (a *acquiring) newLock(image ddb.Item, l stored.Record, end time.Time) *Lock {
	a.item = image
	h := &Lock{locker: a.locker, key: a.Key, packed: a.Core.Pack(a.Raw), stub: l.Stub, id: l.By, token: l.Held, lastToken: l.Token}
	h.noteQueue(image)
	if l.Handed() {
		end = end.Add(lease.Margin(a.locker.Lease) - lease.Margin(l.Lease)) // its margin is that of a grace
		if a.locker.Clockless {
			// lockTime is by the clock of who handed it over.
			h.ahead.Store(int64(l.Until.Sub(a.Clock().Add(time.Until(end)))))
		}
	}
	keep := lease.New
	if l.Handed() {
		keep = lease.NewHanded
	}
	h.Lease = keep(&a.locker.lease, h, end, l.Until)
	if a.Core.Hidden(image) {
		h.ttl, _ = ddb.Time(image[a.Core.Attr.TTL])
	}
	if h.fades(l.Until) {
		h.Claim(time.Now(), a.locker.grace())
	}
	return h
}

// cleaning is the context of all requests that give back what the acquisition
// took: they have one time together.
func (a *acquiring) cleaning(ctx context.Context) context.Context {
	if a.giving == nil {
		a.giving, a.given = ddb.DetachedTimeout(ctx)
	}
	return a.giving
}

// takenOver tells that the lock was that of a dead holder, whose token was lost.
func (a *acquiring) takenOver(ctx context.Context, h *Lock, lost int64) {
	a.Core.Observe.TakenOver(ctx, a.Kind, 1, slog.String("key", a.Key.String()), slog.Int64("token", h.token), slog.Int64("lost", lost))
}
