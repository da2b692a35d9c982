package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Ended is why the lease is over; nil while it is not.
func (l *Lease) Ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Sent is the greatest end that was ever asked for. The caller holds op.
func (l *Lease) Sent() time.Time { return l.sent }

// Finish ends the lease. The caller holds op.
func (l *Lease) Finish(why error) {
	l.mu.Lock()
	l.ended = why
	l.mu.Unlock()
	l.Forget(why)
}

// Lose ends a lease that others have taken over, and returns the error that says
// so. The caller holds op.
func (l *Lease) Lose() error {
	l.Finish(repo.ErrLockLost)
	return l.kind.Describe(repo.ErrLockLost)
}

// Forget cancels the context although the lease may live on at the service
// until its end: nobody renews it any more.
func (l *Lease) Forget(why error) {
	l.Halt()
	l.mu.Lock()
	first := l.cancel(why)
	l.mu.Unlock()
	if first {
		l.report(why)
	}
}

// Expire cancels the context because the deadline has passed. Only its own
// last write can tell whether somebody has taken over since.
func (l *Lease) Expire() {
	l.mu.Lock()
	l.leaveLimiter()
	why := l.expired()
	first := l.cancel(why)
	l.mu.Unlock()
	if first {
		l.report(why)
	}
}

// expired is the cause of a deadline that has passed. The caller holds mu.
func (l *Lease) expired() error {
	if l.failed == nil {
		return repo.ErrLockExpired
	}
	return fmt.Errorf("%w: it could not be renewed: %w", repo.ErrLockExpired, l.failed)
}

// cancel ends the context. The first cause stays: it reports whether this is it, so that
// the caller, who holds mu, reports it when it does not hold it any more.
func (l *Lease) cancel(why error) (first bool) {
	if l.over != nil {
		return false
	}
	l.over = why
	if l.watched != nil {
		l.watched.cancel(why)
	}
	return true
}

// Halt stops the timer for good and ends a renewal under way.
func (l *Lease) Halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = true
	l.leaveLimiter()
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.stopRenew != nil {
		l.stopRenew()
	}
}

// report tells how what was held has ended.
func (l *Lease) report(why error) {
	o := l.cfg.Observe
	if o == nil {
		return
	}
	l.mu.Lock()
	began := l.began
	l.mu.Unlock()
	if began != 0 {
		o.Held(l.sort(), time.Since(process0)-began)
	}
	how := ""
	switch {
	case errors.Is(why, repo.ErrLockLost):
		how = telemetry.Lost
	case errors.Is(why, repo.ErrLockExpired):
		how = telemetry.Expired
	default:
		return
	}
	kind, which := l.kind.Name()
	o.Ended(l.sort(), how, why, kind, which)
}
