package lockedread

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// conclude commits a difference that stands for so many changes, which may
// cancel each other out; 0: for one, if there is a difference. is, if set, tells
// whether an image shows that it was made. With
// ErrOutcomeUnknown it returns the item as it is if it was written.
func (h *hold) conclude(ctx context.Context, made func() (typed.Edit, error), count int64, is func(image ddb.Item) bool) (item any, err error) {
	if err := h.turn.BeginEnd(ctx); err != nil {
		return item, err
	}
	defer h.turn.EndDone()
	core, stored := h.l.line.Core, h.start.Raw
	if len(core.Unique.All) > 0 {
		edit, err := made()
		if err != nil {
			return item, err
		}
		if now, changed := edit.Claims(core, stored, h.raw, max(count, 1)); changed {
			return h.claim(ctx, edit, now, max(count, 1))
		}
		made = func() (typed.Edit, error) { return edit, nil }
	}
	left := stored // for the next caller, if the lock is to stay in this process
	var seen *protocol.Evidence
	var id protocol.WriteID
	defer func() { seen.End() }()
	h.turn.Carries(count)
	end := lock.End{As: lock.Commit, KeepLocal: h.turn.KeepLocal(), Trace: traceOf(core, stored, &id, is)}
	end.Change = func(w *protocol.Write) error {
		edit, err := made()
		if err == nil {
			err = typed.CheckNotStale(core, stored, edit.After)
		}
		if err != nil {
			return err
		}
		item = edit.Item
		w.ApplyOn(stored, edit.Diff)
		if h.fresh {
			typed.MakeVisible(core, w, edit.Diff)
		}
		if h.fresh || !edit.Diff.Empty() || count > 0 {
			count := max(count, 1)
			id = protocol.NewWriteID()
			ring := typed.Writers(core, id, stored)
			item = typed.Bump(h.l.table, w, ring, item, count)
			seen = core.Expect(id, nil, nil)
			if end.KeepLocal { // nobody else needs to know
				left = typed.ApplyTo(core, stored, edit.Diff, ring, count)
			}
		}
		return nil
	}
	next, err := h.lock.End(ctx, end)
	if v, _ := seen.Verdict(); v == protocol.Committed && errors.Is(err, repo.ErrOutcomeUnknown) {
		err = nil // a ring has the id, though the hold does not tell any more
	}
	if err == nil {
		core.Judged(id)
	}
	h.turn.PassOn(next, left)
	return item, err
}

// traceOf is what an image tells of the write id, based on stored: by the item's writers,
// and by what else tells, if anything does. Without an id nothing was to be written.
func traceOf(core *protocol.Core, stored ddb.Item, id *protocol.WriteID, is func(image ddb.Item) bool) lock.Trace {
	return func(image ddb.Item) protocol.Verdict {
		if *id == (protocol.WriteID{}) || is != nil && is(image) {
			return protocol.Committed
		}
		return protocol.RingVerdict(*id, core.Ring(stored), core.Ring(image))
	}
}

// delete is [Held.Delete].
func (h *hold) delete(ctx context.Context) error {
	if h.fresh {
		if err := h.release(ctx); err != nil {
			return err
		}
		return lock.NotFound(h.lock.Key(), h.l.line.Core.Name)
	}
	if err := h.turn.BeginEnd(ctx); err != nil {
		return err
	}
	defer h.turn.EndDone()
	if len(h.l.line.Core.Claims(h.start.Raw)) > 0 {
		_, err := h.claim(ctx, typed.Edit{Remove: true}, nil, 1)
		return err
	}
	_, err := h.lock.End(ctx, lock.End{As: lock.Delete})
	h.turn.PassOn(nil, nil)
	return err
}
