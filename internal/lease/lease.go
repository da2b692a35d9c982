package lease

import (
	"context"
	"fmt"
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
	cfg   Config
	renew Renewal

	// op is held while a request for the lease is under way: a renewal never
	// runs beside the write that ends it.
	op    sync.Mutex
	ended error // guarded by op: why it is over; nil while it is not

	mu        sync.Mutex
	end       time.Time          // guarded by mu: when others may take over, on the own clock
	timer     *time.Timer        // guarded by mu: the next renewal, or the deadline
	stopRenew context.CancelFunc // guarded by mu: ends a renewal under way; nil when there is none
	failed    error              // guarded by mu: why the last renewal failed
	over      error              // guarded by mu: the cause of the context's end; nil while it goes on
	watched   *watched           // guarded by mu: the context; nil until somebody asks for it
	paced     bool               // guarded by mu: counted by the pace of the process
	turn      bool               // guarded by mu: the timer waits for a turn
	halted    bool               // guarded by mu: no timer may be started any more
	lasts     int                // guarded by mu: calls of BeginLast that wait: no renewal may begin
	claim     time.Time          // guarded by mu: renew then, whatever Every says; zero: no need
	again     time.Duration      // guarded by mu: between claims without success
}

// watched is a context that somebody has asked for: many leases are held
// without one, so it is made late.
type watched struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// New keeps something until end, from now on.
func New(cfg Config, end time.Time, renew Renewal) *Lease {
	return &Lease{cfg: cfg, renew: renew, end: end}
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
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched == nil {
		l.watched = &watched{}
		l.watched.ctx, l.watched.cancel = context.WithCancelCause(context.Background())
		if l.over == nil && passed(l.deadline()) {
			l.over = l.expired()
		}
		if l.over != nil {
			l.watched.cancel(l.over)
		} else if l.cfg.Every == 0 {
			l.arm() // from now on somebody is to be told
		}
	}
	return l.watched.ctx
}

// Cause is why the context is cancelled, without the cost of one; nil while the
// lease goes on.
func (l *Lease) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil && passed(l.deadline()) {
		return l.expired()
	}
	return l.over
}

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

// Expired reports whether the deadline has passed.
func (l *Lease) Expired() bool { return passed(l.Until()) }

// passed reports whether a deadline has passed. Go's monotonic clock stands
// still while a machine is suspended and wall clocks can be set back: the
// keeper believes whichever says that more time has passed.
func passed(until time.Time) bool {
	now := time.Now()
	return !until.IsZero() && (!now.Before(until) || !now.Round(0).Before(until.Round(0)))
}

// BeginLast waits for a renewal under way, having told it to stop, so that the
// request which ends the lease runs alone. Done follows.
func (l *Lease) BeginLast() {
	l.mu.Lock()
	l.lasts++
	if l.stopRenew != nil {
		l.stopRenew()
	}
	l.mu.Unlock()
	l.op.Lock()
	l.mu.Lock()
	l.lasts--
	l.mu.Unlock()
}

// Begin waits for a request for the lease under way. Done follows.
func (l *Lease) Begin() { l.op.Lock() }

// Done ends Begin or BeginLast.
func (l *Lease) Done() { l.op.Unlock() }

// Ended is why the lease is over; nil while it is not. The caller holds op.
func (l *Lease) Ended() error { return l.ended }

// Renewed moves the end. The caller holds op.
func (l *Lease) Renewed(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.failed, l.claim = end, nil, time.Time{}
	l.arm()
}

// Finish ends the lease. The caller holds op.
func (l *Lease) Finish(why error) {
	l.ended = why
	l.Forget(why)
}

// Forget cancels the context although the lease may live on at the service
// until its end: nobody renews it any more.
func (l *Lease) Forget(why error) {
	l.Halt()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(why)
}

// Expire cancels the context because the deadline has passed. Only its own
// last write can tell whether somebody has taken over since.
func (l *Lease) Expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unpace()
	l.cancel(l.expired())
}

// expired is the cause of a deadline that has passed. The caller holds mu.
func (l *Lease) expired() error {
	if l.failed == nil {
		return repo.ErrLockExpired
	}
	return fmt.Errorf("%w: it could not be renewed: %w", repo.ErrLockExpired, l.failed)
}

// cancel ends the context. The first cause stays. The caller holds mu.
func (l *Lease) cancel(why error) {
	if l.over != nil {
		return
	}
	l.over = why
	if l.watched != nil {
		l.watched.cancel(why)
	}
}

// Halt stops the timer for good and ends a renewal under way.
func (l *Lease) Halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = true
	l.unpace()
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.stopRenew != nil {
		l.stopRenew()
	}
}
