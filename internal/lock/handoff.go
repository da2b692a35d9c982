package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
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

	next *successor // with KeepLocal
}

// begin makes the first request. The caller holds op.
func (e *ending) begin() error {
	h := e.lock
	if e.writes() {
		e.now = h.CommitTime()
	}
	e.KeepLocal = e.KeepLocal && e.mayPassOn()
	if e.writes() || e.KeepLocal || h.locker.Fair {
		e.write = h.locker.Core.NewWrite()
	}
	if e.As == Commit {
		if err := e.Change(e.write); err != nil {
			return err
		}
	}
	if e.KeepLocal {
		e.next = h.newSuccessor()
		e.next.takeOver(e.write)
	}
	if e.write != nil {
		e.write.Own(h.id, h.token, e.now)
	}
	if err := e.build(); err != nil {
		return fmt.Errorf("%s: %w", h.locker.Core.ItemName(h.key), err)
	}
	return nil
}

// mayPassOn reports whether the end may hand the lock to the next caller of the process.
func (e *ending) mayPassOn() bool {
	h := e.lock
	switch {
	case h.unnoted: // the next one has to read it
		return false
	case e.As == Release || e.As == Drop:
		return !h.inDoubt && !e.unstubs()
	}
	return e.As == Commit
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

// successor is the next lock of this process, which the write that ends one puts in
// its place.
type successor struct {
	of    *Lock
	id    string
	asked time.Time // before its end was reckoned
	until time.Time
}

// newSuccessor makes the successor of the lock. The caller holds op.
func (h *Lock) newSuccessor() *successor {
	asked := time.Now()
	now := h.locker.Clock()
	return &successor{h, stored.NewIDAt(h.locker.Owner, now), asked, h.locker.until(now)}
}

// takeOver adds to the write that ends the lock that its successor has it.
func (s *successor) takeOver(w *protocol.Write) {
	w.Handoff(s.id, s.of.token+1, s.until, s.of.locker.Lease)
	if s.of.own != nil {
		w.Vacate(s.of.own.Place)
	}
}

// adopt makes the handle of the lock, once the write was applied; stub says that the
// item is still nothing but a lock.
func (s *successor) adopt(ctx context.Context, stub bool) *Lock {
	h := s.of
	n := &Lock{locker: h.locker, key: h.key, packed: h.packed, stub: stub, id: s.id, token: h.token + 1, queue: h.queue, standing: h.standing, lastToken: h.lastToken + 1}
	if h.own != nil {
		n.queue = n.queue.Vacated(h.own.Place)
	}
	if stub {
		n.ttl = h.ttl
	}
	n.contended.Store(len(n.queue) > 0)
	h.locker.Core.Observe.HandedOn(ctx, h.locker.Kind, telemetry.ToCaller)
	n.keep(ctx, s.asked.Add(h.locker.Lease), s.until)
	return n
}

// doubt notes that nobody knows whether the write was applied, so that whoever comes
// next looks for the successor.
func (s *successor) doubt() {
	s.of.orphan.Store(&Orphan{s.id, s.asked, s.of.locker, s.of.packed})
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
