package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// schedule sets the one timer.
func (l *Lease) schedule() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arm()
}

// arm sets the one timer: for the next renewal, or, without renewal, for the
// deadline, if somebody is to be told. The caller holds mu.
func (l *Lease) arm() {
	if l.halted || l.cfg.Length == 0 || !l.renewed() && !l.reported {
		return
	}
	l.slot, l.at = false, 0
	due, least := l.left(), l.cfg.Length/20
	if l.cfg.Jumps && l.failed == nil {
		least = ddb.ClockLook
	}
	if l.cfg.Every > 0 {
		if !l.counted {
			l.counted = true
			process.join(l.cfg.Every)
		}
		// A while after the last success, and then in small steps as long as
		// renewals fail. The random part keeps what was taken at one moment
		// from being renewed at one moment for ever.
		next := due + Margin(l.cfg.Length) + l.cfg.Every - l.cfg.Length + rand.N(l.cfg.Every/10+1)
		due = min(due, max(next, least))
	}
	if l.claim != 0 {
		due = min(due, l.claim-time.Since(process0))
	}
	if l.failed != nil {
		l.at = time.Since(process0) + due
	}
	l.wake(due)
}

// renewed reports whether a renewal will be due. The caller holds mu.
func (l *Lease) renewed() bool { return l.cfg.Every > 0 || l.claim != 0 }

// wake sets the timer, by way of looks at a clock that may jump. The caller holds mu.
func (l *Lease) wake(due time.Duration) {
	if l.early = l.cfg.Jumps && due > ddb.ClockLook; l.early {
		due = ddb.ClockLook
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(due, l.onTimer)
		return
	}
	l.timer.Reset(due)
}

// awaitSlot sets the timer for the next slot, but not past the deadline. The caller
// holds mu.
func (l *Lease) awaitSlot(wait time.Duration) {
	l.slot, l.at = true, time.Since(process0)+wait
	l.wake(min(wait, l.left()))
}

// leaveLimiter takes the lease out of the limiter's count. The caller holds mu.
func (l *Lease) leaveLimiter() {
	if l.counted {
		l.counted = false
		process.leave(l.cfg.Every)
	}
}

// onTimer runs when the timer is due, in the timer's own goroutine.
func (l *Lease) onTimer() {
	if l.Expired() {
		l.Expire()
		return
	}
	if l.lookedEarly() {
		return
	}
	if !l.op.TryLock() {
		l.postpone() // another request for this lease is under way
		return
	}
	defer l.op.Unlock()
	ctx, stop := l.begin()
	if ctx == nil {
		return
	}
	defer stop()
	if l.Ended() == nil {
		l.attempt(ctx)
	}
}

// lookedEarly sets the timer anew where it was to look at the clock only.
func (l *Lease) lookedEarly() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	early := l.early
	switch {
	case early && l.at != 0 && !l.halted:
		l.wake(min(l.at-time.Since(process0), l.left()))
	case early:
		l.arm()
	}
	return early
}

// postpone sets the timer anew where the time was not right: a claim that is due
// stays due, and would come back at once, again and again.
func (l *Lease) postpone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claim != 0 {
		l.claim = time.Since(process0) + l.again
	}
	l.arm()
}

// begin returns the context of a renewal, and how to end it; nil if it is not
// the time for one.
func (l *Lease) begin() (context.Context, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted || l.ending > 0 || !l.renewed() {
		l.arm() // an extension has moved the deadline
		return nil, nil
	}
	now, until := time.Now(), l.deadline()
	claims := l.claim != 0
	if claims {
		l.claim = now.Sub(process0) + l.again
		until = now.Add(until.Sub(now) / 2) // one without an answer leaves time for another
	} else if !l.slot {
		if wait := process.slot(now); wait > 0 {
			l.awaitSlot(wait)
			return nil, nil
		}
	}
	if !process.begin(claims) {
		l.awaitSlot(process.slot(now))
		return nil, nil
	}
	l.slot, l.at = false, 0
	ctx, cancel := context.WithDeadline(telemetry.Under(context.Background(), l.trace), until)
	l.stopRenew, l.renewing = cancel, true
	l.wake(l.left()) // the deadline does not wait for the answer
	return ctx, func() {
		process.end()
		cancel()
		l.uninterruptible()
	}
}

// attempt sends a renewal. The caller holds op.
func (l *Lease) attempt(ctx context.Context) {
	err := l.renew(ctx)
	l.mu.Lock()
	// That the time was over says less than what failed before.
	if err != nil && !errors.Is(err, repo.ErrLockExpired) && (l.failed == nil || ctx.Err() == nil) {
		l.failed = err
	}
	over, ended := l.over != nil, l.ended != nil
	l.mu.Unlock()
	switch {
	case !ended && l.Expired():
		l.Expire()
		return
	case err == nil || ended || over:
		return
	case errors.Is(err, repo.ErrLockLost):
		l.Halt()
		return
	}
	if !errors.Is(err, context.Canceled) { // it has not given way to another request
		kind, which := l.kind.Name()
		l.cfg.Observe.Late(ctx, l.sort(), err, kind, which)
	}
	l.schedule()
}
