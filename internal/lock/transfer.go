package lock

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// maxGrace bounds how long a lock waits for one to whom it was handed over and
// who may have died since it enqueued.
const maxGrace = time.Second

// grace is how long a hold that was handed over lasts if its holder does not
// confirm it.
func (c *Config) grace() time.Duration { return min(c.span()/4, maxGrace) }

// glance is the longest time from one look at the queue to the next.
func (c *Config) glance() time.Duration { return c.grace() / 3 }

// step is how much later each one in the queue takes over from the dead than
// the one before it would: longer than a read and a write take, and so short
// that a row of dead waiters costs hardly more than one.
func (c *Config) step() time.Duration { return c.grace() / 8 }

// noteQueue keeps what an image under the hold shows of the queue behind it. The
// caller holds op.
func (h *Lock) noteQueue(image ddb.Item) {
	if !h.locker.Fair {
		return
	}
	l, err := h.locker.Core.ParseRecord(image)
	if err != nil {
		return // the write that ends the hold will meet the same item
	}
	core := h.locker.Core
	h.queue, h.lastToken, h.own = core.ParseQueue(image), l.Token, nil
	_, h.standing = image[core.Attr.LockQueue]
	if own, _, there := h.queue.Find(stored.EntryOf(h.id)); there {
		h.own, h.queue = &own, h.queue.Without(own.ID)
	}
	h.contended.Store(len(h.queue) > 0)
}

// Waited reports whether others wait in the queue on the item.
func (h *Lock) Waited() bool { return h.contended.Load() }

// leaveToQueue ends a fair hold: the lock goes to the one who has waited longest.
// If nobody waits it becomes free, under the condition that nobody has come since
// the last look: it is never free while somebody waits.
func (h *Lock) leaveToQueue(w *protocol.Write) {
	if len(h.queue) == 0 {
		w.Unlock()
		if h.standing {
			w.Remove(h.locker.Core.Attr.LockQueue)
		}
		w.IfNoNewWaiter(h.lastToken)
		return
	}
	grace := h.locker.grace()
	// Clocks that differ by the allowance must not cut the grace short.
	w.Transfer(h.queue[0], h.own, h.token+1, h.locker.Clock().Add(grace+2*h.locker.Skew), grace)
}

// refusedByQueue makes the next request where it was the queue that refused this
// one: the first who waits has left, or somebody came. That is final for this
// request, whatever became of its answers: no place in the queue moves while the hold
// lasts, and lockToken only grows. So the next one may follow.
func (e *ending) refusedByQueue(res *ddb.Result) bool {
	if e.update == nil && e.As != Drop || e.KeepLocal || !e.lock.locker.Fair || res.Outcome != ddb.Condition || !e.lock.queueChanged(res.Image, e.now) {
		return false
	}
	if err := e.build(); err != nil {
		*res = ddb.Result{Outcome: ddb.Refused, Clean: true, Err: err}
		return false
	}
	return true
}

// queueChanged reports whether it was the queue that refused an end, and takes over
// what the image shows of it. now is the time that the lease must not have
// passed, if any.
func (h *Lock) queueChanged(image ddb.Item, now time.Time) bool {
	l, err := h.locker.Core.ParseRecord(image)
	if err != nil || l.By != h.id || l.Held != h.token || !now.IsZero() && !l.Until.After(now) {
		return false
	}
	queue, last := h.queue, h.lastToken
	h.noteQueue(image)
	if len(queue) == 0 {
		return h.lastToken != last
	}
	first, _, there := h.queue.Find(queue[0].ID)
	return !there || first != queue[0]
}
