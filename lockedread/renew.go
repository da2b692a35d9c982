package lockedread

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// Extend moves the end of the lease to a full lease from now. One request;
// ErrLockExpired, ErrLockLost or ErrReleased when it is too late.
func (h *Held[T]) Extend(ctx context.Context) error {
	h.op.Lock()
	defer h.op.Unlock()
	return h.extend(ctx)
}

// extend sends the request. The caller holds op.
func (h *Held[T]) extend(ctx context.Context) error {
	if err := h.usable(); err != nil {
		return err
	}
	if cause := context.Cause(h.ctx); cause != nil {
		return cause
	}
	// lockTime is also the beat that clockless watchers look for: it grows with
	// every extension, even if the wall clock was set back.
	until := h.l.clock().Add(h.l.cfg.Lease)
	if least := h.beats.Add(time.Millisecond); until.Before(least) {
		until = least
	}
	h.beats = until
	in := h.l.core.Extend(h.raw, h.id, h.token, until)
	res := h.l.core.Update(ctx, in, ddb.Options{Timeout: h.l.cfg.Lease / 3, NoSettle: true})
	if res.Outcome == ddb.Condition {
		l, err := h.l.core.ParseLock(res.Image)
		// No greater lockTime was ever sent: if it is in place, this one landed.
		landed := err == nil && l.By == h.id && l.Held == h.token &&
			ddb.Equal(res.Image[h.l.core.Attr.LockTime], ddb.Number(ddb.Seconds(until)))
		if !landed {
			res.Clean = res.Clean && !h.doubt
			if err := h.judge(res); err != nil {
				return err
			}
			if h.doubt { // the commit without a verdict has ended the hold
				h.finish(repo.ErrOutcomeUnknown)
				return guard.UnknownOutcome(h.key, nil)
			}
			return h.lost() // the hold is over, and not by a commit
		}
	} else if res.Outcome != ddb.Applied {
		return h.judge(res)
	}
	h.mu.Lock()
	h.end = res.Sent.Add(h.l.cfg.Lease)
	h.mu.Unlock()
	h.schedule()
	return nil
}

// schedule sets the one timer of a hold: for the next renewal, or, without
// renewal, for the deadline.
func (h *Held[T]) schedule() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arm(h.nextBeat())
}

// nextBeat is when the timer is due. The caller holds mu.
func (h *Held[T]) nextBeat() time.Duration {
	lease := h.l.cfg.Lease
	due := time.Until(h.end) - h.l.cfg.margin()
	if h.l.cfg.Renew {
		// A third of the lease after it began, and then in small steps as long
		// as renewals fail.
		due = min(due, max(time.Until(h.end)-lease*2/3, lease/20))
	}
	return max(due, 0)
}

// arm starts the timer. The caller holds mu.
func (h *Held[T]) arm(d time.Duration) {
	switch {
	case h.stopTimers:
	case h.timer == nil:
		h.timer = time.AfterFunc(d, h.beat)
	default:
		h.timer.Reset(d)
	}
}

// beat runs when the timer is due, in the timer's own goroutine.
func (h *Held[T]) beat() {
	if h.expired() {
		h.cancel(repo.ErrLockExpired)
		return
	}
	h.mu.Lock()
	if h.stopTimers || !h.l.cfg.Renew {
		if !h.stopTimers {
			h.arm(h.nextBeat()) // an extension has moved the deadline
		}
		h.mu.Unlock()
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), h.end.Add(-h.l.cfg.margin()))
	h.stopRenew = cancel
	h.mu.Unlock()
	defer cancel()

	if !h.op.TryLock() {
		// Another request of this hold is under way; look again soon.
		h.schedule()
		return
	}
	defer h.op.Unlock()
	err := h.extend(ctx)
	if h.ended == nil && h.expired() {
		h.cancel(repo.ErrLockExpired)
		return
	}
	if err == nil || errors.Is(err, repo.ErrLockLost) || errors.Is(err, repo.ErrReleased) || h.ctx.Err() != nil {
		return
	}
	h.l.core.Observe.Log.Warn("dynahold: a lock could not be renewed yet", slog.String("table", h.l.core.Table),
		slog.String("key", h.key.String()), slog.Int64("token", h.token), slog.Any("error", err))
	h.schedule()
}

// halt stops the timer for good and ends a renewal under way.
func (h *Held[T]) halt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopTimers = true
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.stopRenew != nil {
		h.stopRenew()
	}
}

// takeOp waits for a renewal under way, having told it to stop, so that the
// hold's last write runs alone.
func (h *Held[T]) takeOp() {
	h.mu.Lock()
	if h.stopRenew != nil {
		h.stopRenew()
	}
	h.mu.Unlock()
	h.op.Lock()
}
