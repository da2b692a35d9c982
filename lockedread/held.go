package lockedread

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// Held is a lock on an item, and the item as it was when the lock was taken.
// It is safe for concurrent use; it ends with Commit, Delete, Release, or its
// loss.
type Held[T any] struct {
	l     *Locker[T]
	key   repo.Key
	raw   ddb.Item // the primary key, encoded
	start guard.Start[T]
	id    string
	token int64
	fresh bool // there is no item yet

	ctx    context.Context
	cancel context.CancelCauseFunc

	// op is held while a request of this hold is under way: a renewal never
	// runs beside a commit.
	op    sync.Mutex
	ended error     // guarded by op: why the hold is over; nil while it is not
	doubt bool      // guarded by op: an earlier commit or delete had no verdict
	beats time.Time // guarded by op: the greatest lockTime that was ever sent

	mu         sync.Mutex
	end        time.Time // guarded by mu: when others may take over, on the own clock
	timer      *time.Timer
	stopRenew  context.CancelFunc // ends a renewal under way; nil when there is none
	stopTimers bool               // guarded by mu: no timer may be started any more
}

func newHeld[T any](a *acquisition[T], l ddb.Lock, start guard.Start[T], end time.Time) *Held[T] {
	ctx, cancel := context.WithCancelCause(context.Background())
	h := &Held[T]{l: a.Locker, key: a.Key, raw: a.Raw, start: start, id: a.id, token: l.Held,
		fresh: a.core.Hidden(start.Raw), beats: l.Until, ctx: ctx, cancel: cancel, end: end}
	h.schedule()
	return h
}

// Item is the item as it was when the lock was taken. For a key without an
// item it has nothing but its key.
func (h *Held[T]) Item() T { return h.start.Item }

// Exists reports whether there was an item when the lock was taken.
func (h *Held[T]) Exists() bool { return !h.fresh }

// Key is the item's key.
func (h *Held[T]) Key() repo.Key { return h.key }

// Token is the fencing token: it grows with every acquisition of the item. An
// outside resource that is to be protected must refuse smaller ones.
func (h *Held[T]) Token() int64 { return h.token }

// Until is when the holder must stop, on its own clock: the end of the lease,
// counted from when the request was first sent, less a margin of a tenth of
// the lease, at most 1 s.
func (h *Held[T]) Until() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end.Add(-h.l.cfg.margin())
}

// Context is cancelled when the hold ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased.
func (h *Held[T]) Context() context.Context { return h.ctx }

// expired reports whether the deadline has passed. Go's monotonic clock stands
// still while a machine is suspended and wall clocks can be set back: the
// holder believes whichever says that more time has passed.
func (h *Held[T]) expired() bool {
	until, now := h.Until(), time.Now()
	return !now.Before(until) || !now.Round(0).Before(until.Round(0))
}

// usable returns why the hold cannot be used any more. The caller holds op.
func (h *Held[T]) usable() error {
	if h.ended != nil {
		return fmt.Errorf("item %v, token %d: %w", h.key, h.token, h.ended)
	}
	return nil
}

// finish ends the hold. The caller holds op.
func (h *Held[T]) finish(why error) {
	h.ended = why
	h.halt()
	h.cancel(why)
}

// judge turns the failed condition of a write of this hold into its error, and
// ends the hold where it is over. nil means that the write was applied.
func (h *Held[T]) judge(res ddb.Result) error {
	if res.Outcome != ddb.Condition {
		return guard.Failed(h.key, res)
	}
	l, err := h.l.core.ParseLock(res.Image)
	if err != nil {
		return fmt.Errorf("%w: item %v: %w", repo.ErrSchema, h.key, err)
	}
	switch l.Commit(h.id, h.token, !h.l.core.Absent(res.Image), res.Clean) {
	case ddb.Committed:
		return nil
	case ddb.Expired:
		h.cancel(repo.ErrLockExpired)
		return fmt.Errorf("item %v, token %d: %w: the lease of %v was over; nothing was written", h.key, h.token, repo.ErrLockExpired, h.l.cfg.Lease)
	case ddb.Lost:
		return h.lost()
	}
	h.finish(repo.ErrOutcomeUnknown)
	return guard.UnknownOutcome(h.key, nil)
}

func (h *Held[T]) lost() error {
	h.finish(repo.ErrLockLost)
	return fmt.Errorf("item %v, token %d: %w: nothing was written", h.key, h.token, repo.ErrLockLost)
}
