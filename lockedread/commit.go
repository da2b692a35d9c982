package lockedread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// Commit writes what differs between item and [Held.Item], counts the version,
// and releases the lock, all in one request. It returns the item as written.
// Without a difference it only releases.
//
// ErrLockExpired and ErrLockLost: nothing was written. ErrFixed: the key or
// the version differs; nothing was sent and the hold goes on. ErrReleased: the
// hold is over already.
func (h *Held[T]) Commit(ctx context.Context, item T) (T, error) {
	h.takeOp()
	defer h.op.Unlock()
	var zero T
	if err := h.usable(); err != nil {
		return zero, err
	}
	edit, err := guard.Compare(h.l.table, h.start, item)
	if err == nil {
		err = guard.Overtakes(h.l.core, h.start.Raw, edit.After)
	}
	if err != nil {
		return zero, err
	}
	w := h.l.core.NewWrite()
	w.Apply(edit.Diff)
	if h.fresh {
		guard.Unhide(h.l.core, w, edit.Diff)
	}
	if h.fresh || !edit.Diff.Empty() {
		item = guard.Bump(h.l.table, w, ddb.NewWriteID(), h.start.Raw, item)
	}
	w.Unlock()
	w.Own(h.id, h.token, h.commitTime())
	in, err := w.Update(h.raw)
	if err != nil {
		return zero, repo.Classify(fmt.Errorf("item %v: %w", h.key, err))
	}
	if err := h.conclude(ctx, true, func(ctx context.Context, opt ddb.Options) ddb.Result { return h.l.core.Update(ctx, in, opt) }); err != nil {
		return zero, err
	}
	return item, nil
}

// commitTime is the time that the lease must not have passed. It is taken once
// per commit: all attempts carry the same, so that no late copy of an earlier
// one can succeed where the verdict was "expired".
func (h *Held[T]) commitTime() time.Time {
	if h.l.cfg.LateCommit {
		return time.Time{}
	}
	return h.l.clock()
}

// conclude sends the write that ends the hold, again and again while it has no
// verdict and the deadline allows: repeating is harmless, since the hold can
// end only once.
//
// writes says that the write carries a change: if an earlier one of this hold
// had no verdict, a hold that is over does not tell which of the two ended it.
func (h *Held[T]) conclude(ctx context.Context, writes bool, send func(context.Context, ddb.Options) ddb.Result) error {
	backoff := ddb.Backoff{Min: h.l.cfg.Wait.Min, Max: h.l.cfg.Wait.Max}
	clean := !h.doubt
	for {
		res := send(ctx, ddb.Options{Timeout: h.l.cfg.Lease / 3})
		clean = clean && res.Clean
		res.Clean = clean
		if res.Outcome == ddb.Unknown && ctx.Err() == nil && !h.expired() {
			ddb.Pause(ctx, backoff.Next(time.Now(), 0, time.Time{}))
			continue
		}
		if res.Outcome == ddb.Refused && !clean {
			res.Outcome = ddb.Unknown
		}
		if res.Outcome != ddb.Applied {
			err := h.judge(res)
			if err == nil && writes && h.doubt {
				h.finish(repo.ErrOutcomeUnknown)
				err = guard.UnknownOutcome(h.key, nil)
			}
			if err != nil {
				h.doubt = h.doubt || writes && errors.Is(err, repo.ErrOutcomeUnknown)
				return err
			}
		}
		h.finish(repo.ErrReleased)
		return nil
	}
}

// Delete deletes the item, and the lock with it, in one request. Its evidence,
// if an answer was lost, is that the item which was held is gone before the
// deadline. ErrNotFound if there was no item; the lock is then released.
func (h *Held[T]) Delete(ctx context.Context) error {
	if h.fresh {
		if err := h.Release(ctx); err != nil {
			return err
		}
		return guard.NotFound(h.key, h.l.core.Table)
	}
	h.takeOp()
	defer h.op.Unlock()
	if err := h.usable(); err != nil {
		return err
	}
	w := h.l.core.NewWrite()
	w.Own(h.id, h.token, h.commitTime())
	in := w.Delete(h.raw)
	doubt := h.doubt
	return h.conclude(ctx, true, func(ctx context.Context, opt ddb.Options) ddb.Result {
		res := h.l.core.Delete(ctx, in, opt)
		if !doubt && res.Outcome == ddb.Condition && h.removed(res) {
			return ddb.Result{Outcome: ddb.Applied}
		}
		return res
	})
}

func (h *Held[T]) removed(res ddb.Result) bool {
	l, err := h.l.core.ParseLock(res.Image)
	return err == nil && l.Remove(h.id, h.token, !h.l.core.Absent(res.Image), res.Clean, !h.expired()) == ddb.Committed
}

// Release gives the lock back without a change. It is harmless after Commit or
// Delete, for use with defer, and works although ctx is done: it then has 3 s
// of its own. ErrLockLost if somebody else ended the hold. One request.
func (h *Held[T]) Release(ctx context.Context) error {
	h.takeOp()
	defer h.op.Unlock()
	switch {
	case errors.Is(h.ended, repo.ErrReleased):
		return nil
	case h.ended != nil:
		return h.usable()
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = detached(ctx)
		defer cancel()
	}
	h.halt()
	stub := h.start.Raw[h.l.core.Attr.LockStub] != nil
	err := h.conclude(ctx, false, func(ctx context.Context, opt ddb.Options) ddb.Result {
		if !stub {
			return h.l.core.Update(ctx, h.l.core.Release(h.raw, h.id, h.token), opt)
		}
		res := h.l.core.Delete(ctx, h.l.core.Unstub(h.raw, h.id, h.token), opt)
		if res.Outcome == ddb.Condition && h.removed(res) {
			res = ddb.Result{Outcome: ddb.Applied}
		}
		return res
	})
	if err != nil {
		// Nothing renews the hold any more: it ends with its lease at the latest.
		h.cancel(repo.ErrReleased)
	}
	return err
}
