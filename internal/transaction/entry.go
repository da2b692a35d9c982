package transaction

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// member is what a repository gives of itself to every item that it touches in a
// transaction.
type member struct {
	by     any // the repository
	core   *protocol.Core
	locker *local.Line // takes the lock at the first touch; nil: none is taken
	queue  *local.Line // becomes the locker of an item that others want; nil: none does

	contention *lock.Contention // which those are
	lock.Settings
}

// entry is an item that a transaction has to do with.
type entry struct {
	member
	key   repo.Key
	raw   ddb.Item // the key, encoded
	place string   // in the order of all items

	op      lease.Exclusive // held by the operation that is at the item
	changer atomic.Int64    // the goroutine in which it runs its caller's change; 0: none that is known

	// Of the whole call; changed under op, or between runs.
	known  bool        // image is what was read
	image  ddb.Item    // empty: there was none
	moment moment      // before it was read, or after its lock was taken
	turn   *local.Turn // the lock; nil: it is not held
	lent   bool        // by a caller that has begun its end

	longest *time.Timer // of a turn in the queue; nil: it is none
	// ifFree demands that nobody holds the item, but maybe the caller, who goes on to hold
	// it; nil: nobody.
	ifFree  func(*protocol.Write)
	waiter  unlocked.Call
	next    func() // run when the call is the next in its process to have the lock
	wanted  bool   // its lock is to be taken before the closure runs again
	awaited bool   // it is to be read then, when nobody holds it
	refuted bool   // it was assumed that there is none, and there was one

	// Of the present run; changed under op.
	run   *Tx
	seen  bool     // the closure knows something of it
	now   ddb.Item // the item as the closure has left it, as it would be stored; empty: none
	count int64    // changes that it stands for
	left  ddb.Item // what the commit makes of it under its lock; nil: it stays as it is
	blind *event   // an event write that has not read the item
}

// event is such a write in a run.
type event struct {
	Event
	once *typed.Once // the id that it has of its own; nil: none
	// fill makes the write with its conditions.
	fill func(w *protocol.Write, id protocol.WriteID) error
	// replay does the same to an item that was read; nil: it cannot be told.
	replay func(e *entry) error
}

// entryOf finds or makes the entry of an item.
func (c *call) entryOf(m member, key repo.Key, raw ddb.Item) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place := rows.Place(m.core.Table.Table, raw)
	if e := c.entries[place]; e != nil {
		if e.by != m.by {
			return nil, fmt.Errorf("%w: item %v in table %q is in the transaction by another repository: each item takes part by one", repo.ErrConfig, key, m.core.Name)
		}
		return e, nil
	}
	for _, other := range c.entries {
		if err := oneClient(m.core.Table, other.core.Table); err != nil {
			return nil, err
		}
		break
	}
	e := &entry{member: m, key: key, raw: raw, place: place, waiter: unlocked.Call{Waiter: lock.Waiter{Core: m.core, Key: key, Raw: raw, Settings: m.Settings}}}
	c.entries[place] = e
	return e, nil
}

// clientOf is what tells the client of a table from others: a client of a kind that cannot
// be compared is taken for that of its table alone.
func clientOf(table *stored.Table) any {
	if reflect.ValueOf(table.Client).Comparable() {
		return table.Client
	}
	return table
}

// oneClient refuses two tables of different clients in one transaction.
func oneClient(table, other *stored.Table) error {
	if clientOf(table) == clientOf(other) {
		return nil
	}
	return fmt.Errorf("%w: table %q has another client than table %q: a transaction goes to one account and Region, through one client", repo.ErrConfig, table.Name, other.Name)
}

func (e *entry) failure(err error) Failure { return Failure{Table: e.core.Name, Key: e.key, Err: err} }

// touch finds the entry of an item for an operation of a run, which ends it by
// leave.
func (tx *Tx) touch(ctx context.Context, m member, key repo.Key, raw ddb.Item) (*entry, error) {
	e, err := tx.call.entryOf(m, key, raw)
	if err != nil {
		return nil, err
	}
	if err := e.enter(ctx, tx.call); err != nil {
		return nil, err
	}
	if e.run == tx {
		return e, nil
	}
	tx.mu.Lock()
	full := len(tx.used) == maxItems
	if !full {
		tx.used = append(tx.used, e)
	}
	tx.mu.Unlock()
	if full {
		e.leave()
		return nil, tx.Doom(tooMany())
	}
	e.begin(tx)
	return e, nil
}

// begin starts the item's part in a run.
func (e *entry) begin(tx *Tx) {
	e.known = e.known && (!e.moment.assumed() || e.turn != nil) // an assumption is made anew
	e.run, e.seen, e.now, e.count, e.left, e.blind = tx, false, e.image, 0, nil, nil
}

// open makes sure that the item is known; writes says that it is to be changed.
// What was written without having read it is then done to the item that was read.
func (e *entry) open(ctx context.Context, tx *Tx, writes bool) error {
	switch {
	case e.blind != nil && e.blind.replay == nil:
		return e.unreadable()
	case e.known && !e.stale(tx.call) && (!writes || !e.lockedByOthers()):
		e.seen = true
		return e.opened(ctx, tx)
	}
	before, moment := e.image, e.moment
	err := e.fetch(ctx, tx, writes)
	if e.seen && (err != nil || !lockless.AsRead(e.core, before, e.image)) {
		if err == nil { // the next run begins with what is there now
			return tx.beginAnew(&repo.ConflictError{Table: e.core.Name, Key: e.key, Attempts: 1})
		}
		// What the closure has seen of it is what the commit must find.
		e.known, e.image, e.moment = true, before, moment
	}
	if err != nil {
		return tx.failed(err)
	}
	e.seen, e.now = true, e.image
	return e.opened(ctx, tx)
}

// opened does what was written without having read the item, now that it is known, unless the
// transaction was made.
func (e *entry) opened(ctx context.Context, tx *Tx) error {
	if err := tx.refuseMade(ctx, e); err != nil {
		return err
	}
	if b := e.blind; b != nil {
		e.blind = nil
		if err := b.replay(e); err != nil {
			return tx.beginAnew(err) // the write itself is refused then, for its item is known
		}
	}
	return nil
}

func (e *entry) unreadable() error {
	return fmt.Errorf("%w: %s: what Apply makes of it is known to DynamoDB only: in a transaction it is the only operation on its item; use Update", repo.ErrConfig, e.core.ItemName(e.key))
}

// fetch locks or reads the item.
func (e *entry) fetch(ctx context.Context, tx *Tx, writes bool) error {
	c := tx.call
	if writes {
		e.lineUpIfContended()
	}
	if e.locker != nil {
		err := e.lockInTurn(ctx, tx)
		if !errors.Is(err, repo.ErrNotFound) {
			return err
		}
	}
	err := e.read(ctx, c, writes)
	switch {
	case errors.Is(err, errQueue):
		return e.fetch(ctx, tx, writes)
	case errors.Is(err, errBusyHands):
		e.awaited = true
		return tx.beginAnew(err)
	}
	if err == nil && e.locker != nil && !e.core.Hidden(e.image) {
		e.known = false
		return e.fetch(ctx, tx, writes) // it came into being just now
	}
	return err
}

// Why an item that somebody holds is not waited for here.
var (
	errBusyHands = errors.New("somebody holds an item, and the transaction holds others")
	errQueue     = errors.New("somebody holds an item, and there is a queue to wait in")
)

// read reads the item without its lock. Where it is to be written, nobody may hold
// it: that is waited for.
func (e *entry) read(ctx context.Context, c *call, writes bool) error {
	for {
		began := c.tick()
		image, err := e.core.Get(ctx, e.raw)
		if err != nil {
			return e.waiter.ExplainEnd(ctx, err)
		}
		e.known, e.image, e.moment = true, image, began
		if !e.lockedByOthers() || e.readable() && !writes {
			return nil
		}
		e.known = false
		if e.locker == nil && e.lineUp() {
			return errQueue
		}
		if len(c.held()) > 0 {
			return errBusyHands
		}
		if err := e.waiter.WaitOrBreak(ctx, image); err != nil {
			return err
		}
	}
}

// readable reports whether what was read under somebody's lock can be validated:
// the end of that lock then moves the version, if it changes anything.
func (e *entry) readable() bool { return e.core.Version != "" }

func (e *entry) lockedByOthers() bool {
	return e.turn == nil && e.image[e.core.Attr.LockedBy] != nil
}

// release gives the lock back, or passes it on to the next of this process.
func (e *entry) release(ctx context.Context, c *call) error {
	release := e.turn.Release
	if e.lent {
		release = e.turn.ReleaseBegun
	}
	err := release(ctx)
	e.released(c)
	return err
}

// released notes that the lock is no longer held.
func (e *entry) released(c *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.turn, e.known = nil, false
	if e.longest != nil {
		e.longest.Stop()
	}
}
