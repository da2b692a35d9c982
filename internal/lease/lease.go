package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// Config says how something is kept. The zero value never ends and sends
// nothing.
type Config struct {
	Length time.Duration // 0: no end
	Every  time.Duration // renew this long after the last success; 0: never
	Margin time.Duration // taken off the end for the keeper's own deadline
	// Failed is told of each renewal that failed and will be repeated.
	Failed func(error)
}

// Renewal sends one renewal. It calls [Lease.Renewed] when it was applied, and
// [Lease.Finish] when it is over for good; op is held.
type Renewal func(ctx context.Context) error

// Lease is something held until a time, with its deadline, its renewal and its
// context. It is safe for concurrent use.
type Lease struct {
	cfg    Config
	renew  Renewal
	ctx    context.Context
	cancel context.CancelCauseFunc

	// op is held while a request for the lease is under way: a renewal never
	// runs beside the write that ends it.
	op    sync.Mutex
	ended error // guarded by op: why it is over; nil while it is not

	mu        sync.Mutex
	end       time.Time // guarded by mu: when others may take over, on the own clock
	timer     *time.Timer
	stopRenew context.CancelFunc // guarded by mu: ends a renewal under way; nil when there is none
	failed    error              // guarded by mu: why the last renewal failed
	halted    bool               // guarded by mu: no timer may be started any more
	claim     time.Time          // guarded by mu: renew then, whatever Every says; zero: no need
	again     time.Duration      // guarded by mu: between claims without success
}

// New keeps something until end, from now on.
func New(cfg Config, end time.Time, renew Renewal) *Lease {
	l := &Lease{cfg: cfg, renew: renew, end: end}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// Claim asks for one renewal at a time of its own, repeated in steps until it
// succeeds: for what was given for a shorter time than it will be kept. It is
// called before Start.
func (l *Lease) Claim(at time.Time, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claim, l.again = at, again
}

// Start starts the timer.
func (l *Lease) Start() { l.schedule() }

// Context is cancelled, with the cause, when the lease is over.
func (l *Lease) Context() context.Context { return l.ctx }

// Until is when its keeper must stop, on its own clock; zero if there is no
// end.
func (l *Lease) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline()
}

// deadline is Until. The caller holds mu.
func (l *Lease) deadline() time.Time {
	if l.cfg.Length == 0 {
		return time.Time{}
	}
	return l.end.Add(-l.cfg.Margin)
}

// Expired reports whether the deadline has passed. Go's monotonic clock stands
// still while a machine is suspended and wall clocks can be set back: the
// keeper believes whichever says that more time has passed.
func (l *Lease) Expired() bool {
	until, now := l.Until(), time.Now()
	return !until.IsZero() && (!now.Before(until) || !now.Round(0).Before(until.Round(0)))
}

// Take waits for a renewal under way, having told it to stop, so that what the
// caller sends next runs alone. Leave follows.
func (l *Lease) Take() {
	l.mu.Lock()
	if l.stopRenew != nil {
		l.stopRenew()
	}
	l.mu.Unlock()
	l.op.Lock()
}

// Queue is Take without stopping a renewal under way.
func (l *Lease) Queue() { l.op.Lock() }

// Leave ends Take or Queue.
func (l *Lease) Leave() { l.op.Unlock() }

// Ended is why the lease is over; nil while it is not. The caller holds op.
func (l *Lease) Ended() error { return l.ended }

// Renewed moves the end. The caller holds op.
func (l *Lease) Renewed(end time.Time) {
	l.mu.Lock()
	l.end, l.failed, l.claim = end, nil, time.Time{}
	l.mu.Unlock()
	l.schedule()
}

// Finish ends the lease. The caller holds op.
func (l *Lease) Finish(why error) {
	l.ended = why
	l.Halt()
	l.cancel(why)
}

// Forget cancels the context although the lease may live on at the service
// until its end: nobody renews it any more.
func (l *Lease) Forget(why error) {
	l.Halt()
	l.cancel(why)
}

// Expire cancels the context because the deadline has passed. Only its own
// last write can tell whether somebody has taken over since.
func (l *Lease) Expire() {
	l.mu.Lock()
	why := l.failed
	l.mu.Unlock()
	if why == nil {
		l.cancel(repo.ErrLockExpired)
		return
	}
	l.cancel(fmt.Errorf("%w: it could not be renewed: %w", repo.ErrLockExpired, why))
}

// schedule sets the one timer: for the next renewal, or, without renewal, for
// the deadline.
func (l *Lease) schedule() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arm()
}

// arm starts the timer. The caller holds mu.
func (l *Lease) arm() {
	if l.halted || l.cfg.Length == 0 {
		return
	}
	due := time.Until(l.deadline())
	if l.cfg.Every > 0 {
		// A while after the last success, and then in small steps as long as
		// renewals fail. The random part keeps what was taken at one moment
		// from being renewed at one moment for ever.
		next := time.Until(l.end.Add(l.cfg.Every-l.cfg.Length)) + rand.N(l.cfg.Every/10+1)
		due = min(due, max(next, l.cfg.Length/20))
	}
	if !l.claim.IsZero() {
		due = min(due, time.Until(l.claim))
	}
	due = max(due, 0)
	if l.timer == nil {
		l.timer = time.AfterFunc(due, l.beat)
		return
	}
	l.timer.Reset(due)
}

// beat runs when the timer is due, in the timer's own goroutine.
func (l *Lease) beat() {
	if l.Expired() {
		l.Expire()
		return
	}
	l.mu.Lock()
	if l.halted || l.cfg.Every == 0 && l.claim.IsZero() {
		l.arm() // an extension has moved the deadline
		l.mu.Unlock()
		return
	}
	if !l.claim.IsZero() {
		l.claim = time.Now().Add(l.again)
	}
	ctx, cancel := context.WithDeadline(context.Background(), l.deadline())
	l.stopRenew = cancel
	l.mu.Unlock()
	defer cancel()

	if !l.op.TryLock() {
		// Another request for this lease is under way; look again soon.
		l.schedule()
		return
	}
	defer l.op.Unlock()
	if l.ended != nil {
		return
	}
	err := l.renew(ctx)
	if err != nil {
		l.mu.Lock()
		if l.failed == nil || ctx.Err() == nil { // that the time was over says less than what failed before
			l.failed = err
		}
		l.mu.Unlock()
	}
	if l.ended == nil && l.Expired() {
		l.Expire()
		return
	}
	if err == nil || l.ended != nil || errors.Is(err, repo.ErrLockLost) || l.ctx.Err() != nil {
		return
	}
	if l.cfg.Failed != nil {
		l.cfg.Failed(err)
	}
	l.schedule()
}

// Halt stops the timer for good and ends a renewal under way.
func (l *Lease) Halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.stopRenew != nil {
		l.stopRenew()
	}
}
