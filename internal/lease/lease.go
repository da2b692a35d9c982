package lease

import (
	"context"
	"errors"
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
	op Exclusive

	mu        sync.Mutex
	ended     error         // guarded by mu, and changed under op: why it is over; nil while it is not
	end       time.Time     // guarded by mu: when others may take over, on the own clock
	timer     *time.Timer   // guarded by mu: the next renewal, or the deadline
	stopRenew func()        // guarded by mu: ends a renewal or extension under way; nil when there is none
	failed    error         // guarded by mu: why the last renewal failed
	over      error         // guarded by mu: the cause of the context's end; nil while it goes on
	watched   *watched      // guarded by mu: the context; nil until somebody asks for it
	paced     bool          // guarded by mu: counted by the pace of the process
	turn      bool          // guarded by mu: the timer waits for a turn
	halted    bool          // guarded by mu: no timer may be started any more
	renewing  bool          // guarded by mu: stopRenew ends a renewal, not an extension
	ending    int32         // guarded by mu: how many wait to end the lease, before whom nobody begins to renew it
	claim     time.Time     // guarded by mu: renew then, whatever Every says; zero: no need
	again     time.Duration // guarded by mu: between claims without success
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

// BeginLast waits for a request for the lease under way, so that the one which
// ends it runs alone: as long as ctx lasts, whose error it returns then. A
// renewal or extension is told to stop, and none begins meanwhile. Done follows,
// unless there is an error.
func (l *Lease) BeginLast(ctx context.Context) error {
	l.mu.Lock()
	l.ending++
	if l.stopRenew != nil {
		l.stopRenew()
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.ending--
		l.mu.Unlock()
	}()
	return l.op.Lock(ctx)
}

// Begin waits for a request for the lease under way, as long as ctx lasts, whose
// error it returns then. Done follows, unless there is an error.
func (l *Lease) Begin(ctx context.Context) error { return l.op.Lock(ctx) }

// Done ends Begin or BeginLast.
func (l *Lease) Done() { l.op.Unlock() }

// Extend renews the lease now, in the place of a renewal under way. It gives way to
// a request that ends the lease: its error is then ErrReleased.
func (l *Lease) Extend(ctx context.Context) error {
	l.mu.Lock()
	if l.renewing && l.stopRenew != nil {
		l.stopRenew() // it would do the same
	}
	l.mu.Unlock()
	if err := l.Begin(ctx); err != nil {
		return err
	}
	defer l.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !l.interruptible(func() { cancel(errEnding) }) {
		return errEnding
	}
	defer l.uninterruptible()
	err := l.renew(ctx)
	if err != nil && l.Ended() == nil && errors.Is(context.Cause(ctx), errEnding) {
		return errEnding
	}
	return err
}

// errEnding is the error of an extension that has given way.
var errEnding = fmt.Errorf("%w: it was to end while it was extended", repo.ErrReleased)

// interruptible notes how to stop a renewal; false if none may begin.
func (l *Lease) interruptible(stop func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending > 0 {
		return false
	}
	l.stopRenew, l.renewing = stop, false
	return true
}

// uninterruptible forgets it: its context would be kept until the next renewal.
func (l *Lease) uninterruptible() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopRenew = nil
}

// Ended is why the lease is over; nil while it is not.
func (l *Lease) Ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Renewed moves the end. The caller holds op.
func (l *Lease) Renewed(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.failed, l.claim = end, nil, time.Time{}
	l.arm()
}

// Finish ends the lease. The caller holds op.
func (l *Lease) Finish(why error) {
	l.mu.Lock()
	l.ended = why
	l.mu.Unlock()
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
