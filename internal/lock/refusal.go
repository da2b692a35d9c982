package lock

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// refused decides what the failed condition of a try means.
func (a *acquiring) refused(ctx context.Context, image ddb.Item) (*Lock, error) {
	core := a.Core
	l, err := a.Lock(image)
	if err != nil {
		if ddb.Equal(image[core.Attr.LockedBy], ddb.Text(a.id)) {
			a.releaseTaken(ctx) // the network delivered the request twice
		}
		return nil, err
	}
	sent, landed := a.landed(l)
	if !landed {
		a.seen = max(a.seen, l.Held, l.Token-1)
	}
	switch a.meaning(l, image, landed) {
	case landedLate:
		core.Delete(ctx, core.Drop(a.Raw, l.By, l.Held), ddb.Options{NoGrace: true})
		return nil, errAgain
	case landedOurs:
		a.id = l.By
		return a.hold(ctx, image, sent)
	case itemThere:
		a.stub = false
		return nil, core.CheckType(image)
	case rowGone:
		return nil, nil
	case stubWanted:
		a.stub = true
		return nil, nil
	case itemMissing:
		return nil, NotFound(a.Key, core.Name)
	case lockFree:
		// To demand the hold that was watched once more would be to wait for ever.
		a.observed = observation{}
		return nil, nil
	}
	return nil, a.waitBehind(ctx, l, image)
}

// landed tells whether an earlier request of this acquisition has the lock, and when
// that was sent.
func (a *acquiring) landed(l stored.Record) (sent time.Time, landed bool) {
	if l.By == a.id {
		return a.sent, true
	}
	sent, landed = a.mayHold[l.By]
	return sent, landed
}

// refusal is what the failed condition of a try means.
type refusal int

const (
	lockHeld    refusal = iota // by somebody else
	landedLate                 // by a late request of ours, which made a row of its own after another holder's was deleted, but with the token of when it was sent
	landedOurs                 // by an earlier request of ours: it is our lock, from when that was sent
	itemThere                  // the item came into being meanwhile, or is nothing but its key
	rowGone                    // it was there when it was judged, and is free now
	stubWanted                 // there is no item, and a stub may be made
	itemMissing                // there is none, and none may be made
	lockFree                   // it has gone from whoever had it
)

// visibleOnly reports whether the lock is wanted of an item that readers see.
func (a *acquiring) visibleOnly() bool { return !a.Row && !a.Stub }

func (a *acquiring) meaning(l stored.Record, image ddb.Item, landed bool) refusal {
	core := a.Core
	switch absent := core.Absent(image); {
	case landed && a.Row && a.locker.Lease == 0 && l.Held <= a.seen && core.LockOnly(image):
		return landedLate
	case landed:
		return landedOurs
	case a.stub:
		return itemThere
	case absent && a.Row:
		return rowGone
	case absent && a.Stub:
		return stubWanted
	case absent, a.visibleOnly() && core.Hidden(image):
		return itemMissing
	case !l.Busy():
		return lockFree
	}
	return lockHeld
}

// waitBehind waits for who holds the lock.
func (a *acquiring) waitBehind(ctx context.Context, l stored.Record, image ddb.Item) error {
	if a.Needless != nil {
		if err := a.Needless(image); err != nil {
			return err
		}
	}
	if a.locker.Clockless {
		a.observed.observe(image, l, a.Core, a.locker.span(), a.watchTime())
	}
	if a.OnWait != nil {
		a.OnWait(l)
	}
	return a.WaitFor(ctx, l)
}
