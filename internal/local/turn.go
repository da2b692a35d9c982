package local

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// Turn is a lock, and the turn of the caller that has it: the turn goes on when the hold
// ends.
type Turn struct {
	Lock *lock.Lock
	Item ddb.Item // as it was stored when this caller got the lock
	// Unwanted is how the lock ends if it was kept for a caller who has left meanwhile.
	Unwanted lock.Ending

	line   *Line
	place  *Place // nil for who stands in no line
	streak streak

	// ending is held from before the request that ends the hold until the turn
	// is passed on: whoever comes second must not pass on nothing before the first
	// passes on the lock.
	ending lease.Exclusive
	passed bool // guarded by ending: the turn
}

// BeginEnd waits for another call that ends the hold, as long as ctx lasts. EndDone
// follows.
func (t *Turn) BeginEnd(ctx context.Context) error {
	if err := t.ending.Lock(ctx); err != nil {
		return fmt.Errorf("%s, token %d: nothing was sent: %w", t.line.Core.ItemName(t.Lock.Key()), t.Lock.Token(), err)
	}
	return nil
}

// EndDone ends BeginEnd.
func (t *Turn) EndDone() { t.ending.Unlock() }

// KeepLocal reports whether the lock should stay in this process after a change of the
// item.
func (t *Turn) KeepLocal() bool {
	if t.line.Fair {
		return t.keepLocal(handoffsQueued)
	}
	return t.keepLocal(handoffsContended)
}

// KeepLocalInTransaction is KeepLocal after a transaction.
func (t *Turn) KeepLocalInTransaction() bool { return t.keepLocal(handoffsQueued) }

func (t *Turn) keepLocal(contended int) bool {
	return t.place != nil && t.place.Waiting() > 0 && !t.streak.over(time.Since(t.streak.since), t.line.Lease, contended)
}

// Release ends the hold without a change, and passes the turn on whatever came of it:
// nobody will try again.
func (t *Turn) Release(ctx context.Context) error {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	if err := t.BeginEnd(ctx); err != nil {
		t.Lock.Forget(repo.ErrReleased) // nobody renews it any more: it ends with its lease at the latest
		return err
	}
	defer t.EndDone()
	return t.ReleaseBegun(ctx)
}

// ReleaseBegun is Release by a caller that has begun the end.
func (t *Turn) ReleaseBegun(ctx context.Context) error {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	defer t.Pass(nil, nil) // also if the client panics
	next, err := t.Lock.End(ctx, lock.End{KeepLocal: t.KeepLocal()})
	t.Pass(next, t.Item)
	return err
}

// PassOn passes the turn on if the hold is over. The caller has begun the end.
func (t *Turn) PassOn(next *lock.Lock, item ddb.Item) {
	if t.Lock.Over() {
		t.Pass(next, item)
	}
}

// Carries says that the write which is about to end the hold carries the changes of so
// many callers. In a queue each of them counts as a turn: a process whose callers come
// back while their group's changes run would else keep the lock for as many groups as it
// may have turns, and all others wait for the work of all of them.
func (t *Turn) Carries(changes int64) {
	if t.line.Fair && changes > 1 {
		t.streak.handoffs += int(changes) - 1
	}
}

// Pass passes the turn on: with the lock of the next one, if it was kept, and
// the item as it is now. The caller has begun the end.
func (t *Turn) Pass(next *lock.Lock, item ddb.Item) {
	if t.place == nil || t.passed {
		return
	}
	t.passed = true
	g := Handoff{Lock: next, Item: item, unwanted: t.Unwanted, orphan: t.Lock.Orphan(), streak: t.streak.handed()}
	pass(t.place, g)
}
