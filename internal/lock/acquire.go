package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Request says how an acquisition is meant.
type Request struct {
	Try bool // one try
	// What to do about a key without an item: by default ErrNotFound.
	Stub bool // lock it by an item that readers do not see
	Row  bool // make the item in the same request: the item is nothing but its lock
	// Orphan is a hold that an earlier write of this process may have left: ours
	// if it is there.
	Orphan *Orphan
	// OnWait is told whom the acquisition waits for; nil: nobody asks.
	OnWait func(protocol.Record)
}

// stubLife is how long after its lease DynamoDB's TTL may remove a stub that
// everybody forgot.
const stubLife = 24 * time.Hour

// acquiring is one call of Acquire. A request that had no answer is not sent
// again: every try has an id of its own, for a late copy of an earlier one must
// not pass for the hold that we have. Tries without an answer are remembered:
// their lock is ours if they landed.
type acquiring struct {
	locker *Locker
	Request
	Waiter
	id         string   // of the present try
	item       ddb.Item // as it was when the lock was taken
	seen       int64    // the greatest token of another holder that an answer has shown
	mayHold    unansweredTries
	unanswered int // tries without an answer, in a row
	resend     ddb.Backoff
	observed   observation
	giving     context.Context // for all that it gives back; nil until it does
	given      context.CancelFunc
}

// Acquire takes the lock of an item, waiting as long as ctx allows, and returns
// the item as it was stored then.
func (t *Locker) Acquire(ctx context.Context, key repo.Key, raw ddb.Item, how Request) (*Lock, ddb.Item, error) {
	wait := t.Wait
	if how.Try {
		wait.Attempts = 1
	}
	a := &acquiring{locker: t, Request: how, resend: ddb.Backoff{Min: t.Wait.Min, Max: t.Wait.Max}, Waiter: Waiter{
		Core: t.Core, Key: key, Raw: raw,
		Settings: Settings{Wait: wait, Skew: t.Skew, Clock: t.Clock},
	}}
	defer a.RecordWait(ctx)
	defer func() {
		if a.given != nil {
			a.given()
		}
	}()
	if how.Orphan != nil {
		a.mayHold = unansweredTries{how.Orphan.id: how.Orphan.sent}
	}
	if a.waitsInQueue() {
		held, err := (&queued{acquiring: a}).run(ctx)
		switch {
		case err == nil:
			return held, a.item, nil
		case !errors.Is(err, errNoQueue):
			a.giveBackUnanswered(ctx)
			return nil, nil, a.ExplainEnd(ctx, err)
		}
	}
	stub := false
	for {
		held, again, err := a.try(ctx, stub)
		switch {
		case held != nil:
			return held, a.item, nil
		case errors.Is(err, errAgain):
			ddb.Sleep(ctx, a.resend.Next(time.Now(), time.Time{}))
		case err != nil:
			a.giveBackUnanswered(ctx)
			return nil, nil, a.ExplainEnd(ctx, err)
		default:
			stub = again == asStub
		}
	}
}

// errAgain asks for another try after one that had no answer.
var errAgain = errors.New("again")

// next says how the next try goes.
type next int

const (
	asItem next = iota
	asStub
)

// try sends one acquire; (nil, next, nil) asks for another.
func (a *acquiring) try(ctx context.Context, stub bool) (*Lock, next, error) {
	// The deadline counts from before the end was reckoned: a process may stand
	// still between any two lines.
	asked, now := time.Now(), a.Clock()
	a.id = protocol.NewID(a.locker.Owner)
	t := protocol.Acquire{ID: a.id, Now: now, Until: a.locker.until(now), Lease: a.locker.Lease, Skew: a.Skew,
		Hidden: a.Stub, Row: a.Row, Clockless: a.locker.Clockless, Watched: a.observed.expired(now), Seen: a.seen}
	in := a.Core.Acquire(a.Raw, t)
	if stub {
		in = a.Core.Stub(a.Raw, t, t.Until.Add(stubLife))
	}
	res := a.Core.Update(ctx, in, ddb.Options{Timeout: a.locker.Lease / 3, AwaitAnswer: true, Once: true,
		OnItem:  stub || a.Row && t.Watched == nil,
		Absence: !a.Stub, // else the write of a stub finds out by itself
	})
	if res.Outcome != ddb.Unknown {
		a.unanswered = 0
	}
	switch res.Outcome {
	case ddb.Applied:
		return a.hold(ctx, res.Item, asked.Add(a.locker.Lease))
	case ddb.Condition:
		return a.refused(ctx, res, asked, stub)
	case ddb.Unknown:
		a.mayHold = a.mayHold.and(a.id, asked, a.locker.landing())
		// Every try is a request of its own; what the client's policy allows for
		// one is allowed in a row.
		if a.unanswered++; ctx.Err() == nil && (res.Limit == 0 || a.unanswered < res.Limit) {
			return nil, asItem, errAgain
		}
		// Whether the lock was taken is not known, but no data is in doubt, and
		// giveBackUnanswered gives it back: the caller has certainly not changed anything.
		return nil, asItem, repo.Classify(fmt.Errorf("item %v: no answer to the request for its lock: %w", a.Key, res.Err))
	}
	return nil, asItem, repo.Classify(res.Err)
}

// refused decides what a failed condition means.
func (a *acquiring) refused(ctx context.Context, res ddb.Result, asked time.Time, stub bool) (*Lock, next, error) {
	core, image := a.Core, res.Image
	l, err := a.Lock(image)
	if err != nil {
		if ddb.Equal(image[core.Attr.LockedBy], ddb.Text(a.id)) {
			a.releaseTaken(ctx) // the network delivered the request twice
		}
		return nil, asItem, err
	}
	sent, landed := a.mayHold[l.By]
	if l.By == a.id {
		sent, landed = asked, true
	}
	switch {
	case landed && a.Row && a.locker.Lease == 0 && l.Held <= a.seen && core.LockOnly(image):
		// It made a row of its own, after another holder's was deleted, but with
		// the token of when it was sent.
		core.Delete(ctx, core.Drop(a.Raw, l.By, l.Held), ddb.Options{NoGrace: true})
		return nil, asItem, errAgain
	case landed:
		// An earlier request took the lock: it is ours, from when that was sent.
		a.id = l.By
		return a.hold(ctx, image, sent.Add(a.locker.Lease))
	}
	a.seen = max(a.seen, l.Held, l.Token-1)
	switch {
	case stub:
		return nil, asItem, nil // the item came into being meanwhile
	case core.Absent(image) && a.Row:
		return nil, asItem, nil // it was there when it was judged, and is free now
	case core.Absent(image) && a.Stub:
		return nil, asStub, nil
	case core.Absent(image), !a.Row && !a.Stub && core.Hidden(image):
		return nil, asItem, NotFound(a.Key, core.Name)
	}
	if !l.Busy() {
		// What was watched has gone and the lock is free. To insist on the gone
		// hold would be to wait for ever.
		a.observed = observation{}
		return nil, asItem, nil
	}
	if a.locker.Clockless {
		a.observed.observe(image, l, core, a.locker.Lease, a.Clock())
	}
	if a.OnWait != nil {
		a.OnWait(l)
	}
	return nil, asItem, a.WaitFor(ctx, l)
}

// hold makes the handle of a lock that was taken; end is when others may take
// over, on the own clock. A lock that the caller will not have is given back.
func (a *acquiring) hold(ctx context.Context, raw ddb.Item, end time.Time) (*Lock, next, error) {
	l, err := a.Lock(raw)
	if err == nil && l.Held == 0 {
		err = fmt.Errorf("%w: item %v: attribute %q is missing", repo.ErrSchema, a.Key, a.Core.Attr.LockHeld)
	}
	if err == nil && a.locker.late(end) {
		err = errAgain // its holder could do nothing with it
	}
	if err != nil {
		a.releaseTaken(ctx)
		return nil, asItem, err
	}
	a.item = raw
	return newLock(a, l, end), asItem, nil
}

// cleaning is the context of all requests that give back what the acquisition
// took: they have one time together.
func (a *acquiring) cleaning(ctx context.Context) context.Context {
	if a.giving == nil {
		a.giving, a.given = ddb.DetachedTimeout(ctx)
	}
	return a.giving
}
