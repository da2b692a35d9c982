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

// nextLock is the hold that the next one of this process gets: the write that
// ends ours puts it on the item.
type nextLock struct {
	id    string
	asked time.Time // before its end was reckoned
	until time.Time
}

// sendEnd sends the update that ends the hold: with what set adds to it, and,
// with pass, with the lock passed on instead of removed. now, if set, is what
// the lease must not have passed. The caller holds op.
func (h *Lock) sendEnd(ctx context.Context, how endOptions, set func(*protocol.Write), pass bool, now time.Time) (next *Lock, err error) {
	w := h.locker.Core.NewWrite()
	if set != nil {
		set(w)
	}
	var s nextLock
	if pass {
		s = nextLock{id: protocol.NewID(h.locker.Owner), asked: time.Now()}
		s.until = h.locker.until(h.locker.Clock())
		w.Handoff(s.id, h.token+1, s.until, h.locker.Lease)
		w.Dequeue(h.entry)
	}
	w.Own(h.id, h.token, now)
	bare := h.stub && set == nil // a change would make an item of it
	send, err := h.endWrite(w, pass, bare, now)
	if err != nil {
		return nil, repo.Classify(fmt.Errorf("item %v: %w", h.key, err))
	}
	if err := h.end(ctx, how, send); err != nil {
		if pass && errors.Is(err, repo.ErrOutcomeUnknown) {
			h.orphan.Store(&Orphan{s.id, s.asked, h.locker, h.packed})
		}
		return nil, err
	}
	if !pass {
		return nil, nil
	}
	next = h.adoptNext(s)
	next.stub = bare
	return next, nil
}

// endWrite makes the request of a write that ends the hold, or passes it on.
func (h *Lock) endWrite(w *protocol.Write, pass, bare bool, now time.Time) (send, error) {
	if h.locker.Fair && !pass {
		return h.transfer(w, bare, now)
	}
	if !pass {
		w.Unlock()
	}
	in, err := w.Update(h.raw())
	return h.update(in), err
}

// Orphan is a hold that a write without a verdict may have put on the item.
type Orphan struct {
	id   string
	sent time.Time
	t    *Locker
	key  ddb.Key
}

// Undo releases the hold, if it is there.
func (g *Orphan) Undo() {
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	g.t.releaseID(ctx, g.t.Core.Unpack(g.key), g.id)
}

// Orphan is the hold that was to be passed on by a write that had no verdict;
// nil if there is none.
func (h *Lock) Orphan() *Orphan { return h.orphan.Load() }

// adoptNext makes the handle of the hold that was passed on.
func (h *Lock) adoptNext(s nextLock) *Lock {
	n := &Lock{locker: h.locker, key: h.key, packed: h.packed, id: s.id, token: h.token + 1, lastExpiry: s.until, queue: h.queue, lastToken: h.lastToken + 1}
	n.rivals.Store(len(n.queue) > 0)
	n.keep(s.asked.Add(h.locker.Lease))
	return n
}
