package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// ending is a lock that is being ended: the request that does it, and what is
// known of its attempts.
type ending struct {
	End
	lock  *Lock
	write *protocol.Write // without what the queue adds to it; nil: the request is always the same
	now   time.Time       // that the lease must not have passed; zero: it may have

	update *dynamodb.UpdateItemInput // one of the two is the request
	remove *dynamodb.DeleteItemInput

	clean bool // no attempt of the present request may have been applied
	first bool // no attempt of the end may have been applied before the last

	// The next lock of this process, with KeepLocal.
	nextID string
	asked  time.Time // before its end was reckoned
	until  time.Time
}

// begin makes the first request. The caller holds op.
func (e *ending) begin() error {
	h := e.lock
	if e.writes() {
		e.now = h.commitTime()
	}
	e.KeepLocal = e.KeepLocal && (e.As == Commit || (e.As == Release || e.As == Drop) && !h.inDoubt && !e.unstubs())
	if e.writes() || e.KeepLocal || h.locker.Fair {
		e.write = h.locker.Core.NewWrite()
	}
	if e.As == Commit {
		if err := e.Change(e.write); err != nil {
			return err
		}
	}
	if e.KeepLocal {
		e.nextID, e.asked = protocol.NewIDAt(h.locker.Owner, h.locker.Clock()), time.Now()
		e.until = h.locker.until(h.locker.Clock())
		e.write.Handoff(e.nextID, h.token+1, e.until, h.locker.Lease)
		if h.own != nil {
			e.write.Vacate(h.own.Place)
		}
	}
	if e.write != nil {
		e.write.Own(h.id, h.token, e.now)
	}
	if err := e.build(); err != nil {
		return fmt.Errorf("%s: %w", h.locker.Core.ItemName(h.key), err)
	}
	return nil
}

// unstubs reports whether the end deletes an item that is nothing but the lock,
// and for which nobody waits.
func (e *ending) unstubs() bool {
	return e.As == Release && e.lock.stub && len(e.lock.queue) == 0
}

// build makes the request as the queue is known.
func (e *ending) build() (err error) {
	h, core, fair := e.lock, e.lock.locker.Core, e.lock.locker.Fair
	key := h.raw()
	e.update, e.remove, e.clean = nil, nil, true
	switch {
	case e.As == Drop && !e.KeepLocal && !fair:
		e.remove = core.Drop(key, h.id, h.token)
	case e.As == Drop && !e.KeepLocal && len(h.queue) == 0:
		w := e.write.Clone()
		w.IfNoNewWaiter(h.lastToken)
		e.remove = w.Delete(key)
	case e.As == Delete:
		e.remove = e.write.Delete(key)
	case e.unstubs():
		e.remove = core.Unstub(key, h.id, h.token)
	case e.KeepLocal:
		e.update, err = e.write.Update(key)
	case fair:
		w := e.write.Clone()
		h.leaveToQueue(w)
		e.update, err = w.Update(key)
	case e.As == Release:
		e.update = core.Release(key, h.id, h.token)
	default:
		e.write.Unlock()
		e.update, err = e.write.Update(key)
	}
	return err
}

// adoptNext makes the handle of the lock that stays in this process.
func (e *ending) adoptNext(ctx context.Context) *Lock {
	h := e.lock
	n := &Lock{locker: h.locker, key: h.key, packed: h.packed, stub: h.stub && e.As == Release, id: e.nextID, token: h.token + 1, queue: h.queue, standing: h.standing, lastToken: h.lastToken + 1}
	if h.own != nil {
		n.queue = n.queue.Vacated(h.own.Place)
	}
	n.contended.Store(len(n.queue) > 0)
	h.locker.Core.Observe.HandedOn(ctx, h.locker.Kind, telemetry.ToCaller)
	n.keep(ctx, e.asked.Add(h.locker.Lease), e.until)
	return n
}

// Orphan is a hold that a write without a verdict may have put on the item.
type Orphan struct {
	id     string
	sent   time.Time
	locker *Locker
	key    ddb.Key
}

// Release releases the hold, if it is there.
func (o *Orphan) Release() {
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	o.locker.releaseUnused(ctx, o.locker.Core.Unpack(o.key), o.id, false)
}

// Orphan is the hold that was to be kept in this process by a write that had no
// verdict; nil if there is none.
func (h *Lock) Orphan() *Orphan { return h.orphan.Load() }
