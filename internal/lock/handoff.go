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

// successor is the hold that the next one of this process gets: the write that
// ends ours puts it on the item.
type successor struct {
	id    string
	asked time.Time // before its end was reckoned
	until time.Time
}

// write sends the update that ends the hold: with what set adds to it, and,
// with pass, with the lock passed on instead of removed. now, if set, is what
// the lease must not have passed. The caller holds op.
func (h *Lock) write(ctx context.Context, how concluding, set func(*protocol.Write), pass bool, now time.Time) (next *Lock, err error) {
	w := h.t.Core.NewWrite()
	if set != nil {
		set(w)
	}
	var s successor
	if pass {
		s = successor{id: protocol.NewID(h.t.Owner), asked: time.Now()}
		s.until = h.t.until(h.t.Clock())
		w.PassOn(s.id, h.token+1, s.until, h.t.Lease)
		w.Depart(h.entry)
	}
	w.Own(h.id, h.token, now)
	bare := h.stub && set == nil // a change would make an item of it
	send, err := h.last(w, pass, bare, now)
	if err != nil {
		return nil, repo.Classify(fmt.Errorf("item %v: %w", h.key, err))
	}
	if err := h.conclude(ctx, how, send); err != nil {
		if pass && errors.Is(err, repo.ErrOutcomeUnknown) {
			h.ghost.Store(&Ghost{s.id, s.asked, h.t, h.packed})
		}
		return nil, err
	}
	if !pass {
		return nil, nil
	}
	next = h.succeed(s)
	next.stub = bare
	return next, nil
}

// last makes the request of a write that ends the hold, or passes it on.
func (h *Lock) last(w *protocol.Write, pass, bare bool, now time.Time) (send, error) {
	if h.t.Fair && !pass {
		return h.bequeath(w, bare, now)
	}
	if !pass {
		w.Unlock()
	}
	in, err := w.Update(h.raw())
	return h.update(in), err
}

// Ghost is a hold that a write without a verdict may have put on the item.
type Ghost struct {
	id   string
	sent time.Time
	t    *Locker
	key  ddb.Key
}

// Undo releases the hold, if it is there.
func (g *Ghost) Undo() {
	ctx, cancel := ddb.Detached(context.Background())
	defer cancel()
	g.t.free(ctx, g.t.Core.Unpack(g.key), g.id)
}

// Ghost is the hold that was to be passed on by a write that had no verdict;
// nil if there is none.
func (h *Lock) Ghost() *Ghost { return h.ghost.Load() }

// succeed makes the handle of the hold that was passed on.
func (h *Lock) succeed(s successor) *Lock {
	n := &Lock{t: h.t, key: h.key, packed: h.packed, id: s.id, token: h.token + 1, beats: s.until, queue: h.queue, drawn: h.drawn + 1}
	n.rivals.Store(len(n.queue) > 0)
	n.keep(s.asked.Add(h.t.Lease))
	return n
}
