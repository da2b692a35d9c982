package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Locker takes the locks of a table's items. It is safe for concurrent use.
type Locker struct {
	Core *protocol.Core
	Config
	Contention *Contention // nil: nothing is remembered
	HoldTimes  *HoldTimes  // nil: nothing is remembered

	lease  lease.Config // of all its locks
	hedges ddb.Budget   // of the writes that hand them on
}

// NewLocker makes a locker that remembers nothing. Its owner has checked cfg.
func NewLocker(core *protocol.Core, cfg Config) *Locker {
	if cfg.Clock == nil {
		cfg.Clock = core.Clock
	}
	t := &Locker{Core: core, Config: cfg}
	t.lease = lease.Config{Length: cfg.Lease, Every: cfg.Every, Jumps: core.Jumps,
		Clock: func() time.Time { return t.Clock() }, Observe: core.Observe, Sort: cfg.Kind}
	return t
}

// byID says how a hold is released of which nothing but the id is known.
type byID int

const (
	keepItem   byID = iota
	breakHold       // and its handle, if there is one, must find out
	deleteStub      // the item, if it is a stub
	deleteItem
)

// sendRelease sends the release of the hold of an id, whatever its token.
func (t *Locker) sendRelease(ctx context.Context, raw ddb.Item, id string, how byID, opt ddb.Options) ddb.Result {
	a := &t.Core.Attr
	w := t.Core.NewWrite()
	w.IfEqual(a.LockedBy, ddb.Text(id))
	if how == deleteStub {
		w.IfExists(a.LockStub)
	}
	if how == deleteStub || how == deleteItem {
		return t.Core.Delete(ctx, w.Delete(raw), opt)
	}
	w.Unlock()
	if how == breakHold {
		w.SetTo(a.LockStolen, w.Name(a.LockHeld))
	}
	in, err := w.Update(raw)
	if err != nil {
		return ddb.Result{Outcome: ddb.Refused, Clean: true, Err: err}
	}
	if !t.Fair {
		return t.Core.Update(ctx, in, opt)
	}
	in.ReturnValues = types.ReturnValueAllNew
	res := t.Core.Update(ctx, in, opt)
	if own, _, there := t.Core.ParseQueue(res.Item).Find(stored.EntryOf(id)); there {
		// A hold that an enqueue has taken stands in the queue. Without an answer who
		// comes next loses a grace by it.
		if leave, err := t.Core.Dequeue(raw, id, own.Place); err == nil {
			t.Core.Update(ctx, leave, ddb.Options{NoGrace: true, Holding: true})
		}
	}
	return res
}

// releaseUnused releases the hold of an id that nobody will have; a stub is deleted,
// where one may have been made. It returns whose hold it found in its place; ""
// if there is none. freed is false if no answer tells that the hold is over: then the lock
// ends with its lease, if it has one.
func (t *Locker) releaseUnused(ctx context.Context, raw ddb.Item, id string, stub bool) (holder string, freed bool) {
	if stub {
		res := t.sendRelease(ctx, raw, id, deleteStub, ddb.Options{NoGrace: true})
		l, _ := t.Core.ParseRecord(res.Image) // whose it is can be told of any item
		if res.Outcome == ddb.Applied || res.Outcome == ddb.Condition && l.By != id {
			return l.By, true
		}
	}
	res := t.sendRelease(ctx, raw, id, keepItem, ddb.Options{NoGrace: true, Holding: true})
	l, _ := t.Core.ParseRecord(res.Image)
	return l.By, res.Outcome == ddb.Applied || res.Outcome == ddb.Condition
}

// heldBy reports whether an item shows a hold of an id.
func (t *Locker) heldBy(image ddb.Item, id string) bool {
	l, err := t.Core.ParseRecord(image)
	return err == nil && l.By == id
}

// ReleaseByID releases the hold of an id, whatever its token; drop deletes the
// item with it; seen says that a read has just shown it. ErrNotHeld if nobody holds the
// item, ErrLocked if another does.
func (t *Locker) ReleaseByID(ctx context.Context, key repo.Key, raw ddb.Item, id string, drop, seen bool) error {
	how := breakHold
	if drop {
		how = deleteItem
	}
	res := t.sendRelease(ctx, raw, id, how, ddb.Options{Holding: true, Absence: true, Stands: func(image ddb.Item) bool { return t.heldBy(image, id) }})
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Condition:
		l, err := (&Waiter{Core: t.Core, Key: key}).Lock(res.Image)
		if err != nil && res.Clean {
			return err
		}
		switch notHeldUnder(l, err == nil, res.Clean && !seen) {
		case endedByUs:
			return nil // the hold of the id is over, and nobody has the lock: all that was asked for
		case heldByOther:
			return Locked(t.Core, key, l)
		case endedByForce:
			return fmt.Errorf("%w: %w", repo.ErrNotHeld, UnknownOutcome(t.Core.Table, key, errEndedSince))
		case heldByNobody:
			return fmt.Errorf("%w: %s", repo.ErrNotHeld, t.Core.ItemName(key))
		}
		return UnknownOutcome(t.Core.Table, key, err)
	}
	return Failed(t.Core, key, res)
}

// notHeld is what a release by id makes of an item that is not held under its id.
type notHeld int

const (
	undecided    notHeld = iota
	endedByUs            // the hold was there, and nobody holds the item now
	heldByOther          // and nothing speaks for a release of this call
	heldByNobody         // the same
	endedByForce         // the last hold was ended by a release or a break: by a copy of this one, perhaps
)

// notHeldUnder judges it. doubtless says that no earlier attempt can have released the
// hold, as far as the answers tell.
func notHeldUnder(l stored.Record, readable, doubtless bool) notHeld {
	switch {
	case !readable:
		return undecided
	case !doubtless && l.Busy():
		return undecided
	case !doubtless:
		return endedByUs
	case l.Busy():
		return heldByOther
	case l.Token > 0 && l.Stolen == l.Token-1:
		return endedByForce
	}
	return heldByNobody
}
