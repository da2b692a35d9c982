package lock

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// maxGrace bounds how long a lock waits for one to whom it was handed over and
// who may have died since it drew its number.
const maxGrace = time.Second

// grace is how long a hold that was handed over lasts if its holder does not
// claim it.
func (c *Config) grace() time.Duration { return min(c.Lease/4, maxGrace) }

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
	h.queue, h.lastToken = h.locker.Core.ParseQueue(image), l.Token
	for _, own := range []string{h.entry, protocol.EntryOf(h.id)} {
		if _, _, there := h.queue.Find(own); there {
			h.entry, h.queue = own, h.queue.Without(own)
		}
	}
	h.rivals.Store(len(h.queue) > 0)
}

// Waited reports whether others wait in the queue on the item.
func (h *Lock) Waited() bool { return h.rivals.Load() }

// transfer sends a write that ends a fair hold: the lock goes to the one who
// has waited longest. If nobody waits it becomes free, under the condition that
// nobody has come since the last look: it is never free while somebody waits.
//
// A refusal because the one has left, or somebody came, is final for that
// request, whatever became of its answers: an entry that is gone never comes
// back under its ticket, and lockToken only grows. So the next one may follow.
// now is the time that the lease must not have passed, if any.
//
// A bare stub is deleted where nobody turns out to wait for it any more.
func (h *Lock) transfer(w *protocol.Write, bare bool, now time.Time) (send, error) {
	in, err := h.transferWrite(w)
	return func(ctx context.Context, opt ddb.Options) ddb.Result {
		for {
			res := h.locker.Core.Update(ctx, in, opt)
			if res.Outcome != ddb.Condition || !h.queueChanged(res.Image, now) {
				return res
			}
			if bare && len(h.queue) == 0 {
				return h.remove(h.locker.Core.Unstub(h.raw(), h.id, h.token), false)(ctx, opt)
			}
			next, err := h.transferWrite(w)
			if err != nil {
				return ddb.Result{Outcome: ddb.Refused, Clean: true, Err: err}
			}
			in = next
		}
	}, err
}

// transferWrite is the request that ends the hold, as the queue is known.
func (h *Lock) transferWrite(w *protocol.Write) (*dynamodb.UpdateItemInput, error) {
	w = w.Clone()
	w.Dequeue(h.entry)
	if len(h.queue) == 0 {
		w.Unlock()
		w.IfNoNewWaiter(h.lastToken)
		return w.Update(h.raw())
	}
	grace := h.locker.grace()
	// Clocks that differ by the allowance must not cut the grace short.
	w.Transfer(h.queue[0], h.token+1, h.locker.Clock().Add(grace+2*h.locker.Skew), grace)
	return w.Update(h.raw())
}

// queueChanged reports whether it was the queue that refused the write, and takes over
// what the image shows of it.
func (h *Lock) queueChanged(image ddb.Item, now time.Time) bool {
	l, err := h.locker.Core.ParseRecord(image)
	if err != nil || l.By != h.id || l.Held != h.token || !now.IsZero() && !l.Until.After(now) {
		return false
	}
	queue, drawn := h.queue, h.lastToken
	h.noteQueue(image)
	if len(queue) == 0 {
		return h.lastToken != drawn
	}
	first, _, there := h.queue.Find(queue[0].ID)
	return !there || first != queue[0]
}
