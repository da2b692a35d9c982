package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Config says how everything that one client holds is kept.
type Config struct {
	Length time.Duration // 0: no end
	Every  time.Duration // renew this long after the last success; 0: never
	Clock  func() time.Time
	// Jumps says that Clock is not the machine's own. Nothing tells when it jumps: timers
	// look at it again and again.
	Jumps bool
	Pause ddb.Backoff // between two tries to end a hold that had no answer
	// Observe is told of what becomes of what is held; nil: nobody is.
	Observe *telemetry.Observer
	Sort    string // the kind for telemetry; "": the word that Kind.Name has for it
}

// maxMargin bounds what is taken off a lease.
const maxMargin = time.Second

// Margin is taken off the end of a lease for its keeper's own deadline.
func Margin(length time.Duration) time.Duration { return min(length/10, maxMargin) }

// Kind is what is held: an item's lock, a ticket, a permit, or a job. It says
// what these differ in.
type Kind interface {
	// Renew sends the write that moves the end to until. It returns nil if that
	// end is in place, by this attempt or by an earlier one, and calls
	// [Lease.Lose] if the hold is found to be over. The lease's op is held.
	Renew(ctx context.Context, until time.Time) error
	// Describe adds to an error which one it is about.
	Describe(err error) error
	// Name is the word for the kind, and which one it is, for the log.
	Name() (kind string, which []slog.Attr)
}

// Lease is something held until a time, with its deadline, its renewal and its
// context. It is safe for concurrent use.
type Lease struct {
	cfg  *Config
	kind Kind

	// op is held while a request for the lease is under way: a renewal never
	// runs beside the write that ends it.
	op       Exclusive
	sent     time.Time     // guarded by op: the greatest end that was ever sent
	next     time.Duration // guarded by op: what ahead will be if the end that is being sent is applied
	inDoubt  bool          // guarded by op: an earlier write that ends it had no verdict
	early    bool          // guarded by mu, and here because here is room: the timer only looks whether the clock has jumped
	reported bool          // guarded by mu, and here for the same reason: the deadline is told at once, also if nobody has the context

	mu        sync.Mutex
	ended     error         // guarded by mu, and changed under op: why it is over; nil while it is not
	end       time.Time     // guarded by mu: when others may take over, on the machine's clock
	ahead     time.Duration // guarded by mu: how far cfg.Clock was ahead of that when the end was written
	timer     *time.Timer   // guarded by mu: the next renewal, or the deadline
	stopRenew func()        // guarded by mu: ends a renewal or extension under way; nil when there is none
	failed    error         // guarded by mu: why the last renewal failed
	over      error         // guarded by mu: the cause of the context's end; nil while it goes on
	watched   *watched      // guarded by mu: the context; nil until somebody asks for it
	counted   bool          // guarded by mu: counted by the limiter of the process
	slot      bool          // guarded by mu: the timer waits for a slot
	halted    bool          // guarded by mu: no timer may be started any more
	renewing  bool          // guarded by mu: stopRenew ends a renewal, not an extension
	ending    int32         // guarded by mu: how many wait to end the lease, before whom nobody begins to renew it
	claim     time.Duration // guarded by mu: renew then, since the process began, whatever Every says; 0: no need
	again     time.Duration // guarded by mu: between claims without success

	began time.Duration    // guarded by mu: when it was taken, since the process began; 0: nobody asked
	trace *telemetry.Trace // guarded by mu: where it was taken; nil: nobody listens
}

// watched is a context that somebody has asked for: many leases are held
// without one, so it is made late.
type watched struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// New keeps something that others may take over at end, on the own clock; sent
// is the end that was written.
func New(cfg *Config, kind Kind, end, sent time.Time) *Lease {
	return &Lease{cfg: cfg, kind: kind, end: end, sent: sent, ahead: sent.Sub(end)}
}

// NewHanded is New for what another client has written, whose clock may be another.
func NewHanded(cfg *Config, kind Kind, end, sent time.Time) *Lease {
	l := New(cfg, kind, end, sent)
	if cfg.Jumps {
		l.ahead = time.Until(cfg.Clock())
	}
	return l
}

// Claim asks for one renewal at a time of its own, repeated in steps until it
// succeeds: for what was given for a shorter time than it will be kept. It is
// called before Start.
func (l *Lease) Claim(at time.Time, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claim, l.again = at.Sub(process0), again
}

// Start starts the timer. ctx is that of who has taken what is held: in the trace the
// renewals stand below it.
func (l *Lease) Start(ctx context.Context) {
	l.Taken(ctx)
	l.schedule()
}

// Taken is Start for what a renewal has started already.
func (l *Lease) Taken(ctx context.Context) {
	o := l.cfg.Observe
	if trace := o.TraceOf(ctx); trace != nil || o.Measures() {
		l.mu.Lock()
		l.began, l.trace = time.Since(process0), trace
		l.mu.Unlock()
		o.Acquired(l.sort())
	}
}

// process0 is when times of telemetry begin.
var process0 = time.Now()

// sort is the kind for telemetry.
func (l *Lease) sort() string {
	if l.cfg.Sort != "" {
		return l.cfg.Sort
	}
	kind, _ := l.kind.Name()
	return kind
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

// Context is cancelled, with the cause, when the lease is over.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	late := false
	if l.watched == nil {
		l.watched = &watched{}
		l.watched.ctx, l.watched.cancel = context.WithCancelCause(context.Background())
		late = l.over == nil && l.passed()
		if l.over != nil {
			l.watched.cancel(l.over)
		} else if !late && l.cfg.Every == 0 && !l.reported {
			l.arm() // from now on somebody is to be told
		}
	}
	ctx := l.watched.ctx
	l.mu.Unlock()
	if late {
		l.Expire()
	}
	return ctx
}

// Report lets the deadline be told at once, as Context does, without the cost of one:
// where somebody works under the lease.
func (l *Lease) Report() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported || l.over != nil {
		return
	}
	l.reported = true
	if l.watched == nil && l.cfg.Every == 0 {
		l.arm()
	}
}

// Cause is why the context is cancelled, without the cost of one; nil while the
// lease goes on.
func (l *Lease) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil && l.passed() {
		return l.expired()
	}
	return l.over
}

// Until is when its keeper must stop, on its own clock; zero if there is no
// end.
func (l *Lease) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Length > 0 && l.cfg.Jumps {
		return l.deadline().Round(0).Add(l.ahead)
	}
	return l.deadline()
}

// Left is how long it is until then, for one that has an end.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left()
}

// left is Left. The caller holds mu.
func (l *Lease) left() time.Duration {
	left := time.Until(l.deadline())
	if l.cfg.Jumps {
		left = min(left, l.deadline().Add(l.ahead).Sub(l.cfg.Clock()))
	}
	return left
}

// deadline is Until by the machine's clock. The caller holds mu.
func (l *Lease) deadline() time.Time {
	if l.cfg.Length == 0 {
		return time.Time{}
	}
	return l.end.Add(-Margin(l.cfg.Length))
}

// Expired reports whether the deadline has passed.
func (l *Lease) Expired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed()
}

// passed is Expired. The caller holds mu.
func (l *Lease) passed() bool {
	return l.cfg.Length > 0 && (passed(l.deadline()) || l.cfg.Jumps && l.left() <= 0)
}

// passed reports whether a deadline has passed. Go's monotonic clock stands
// still while a machine is suspended and wall clocks can be set back: the
// keeper believes whichever says that more time has passed.
func passed(until time.Time) bool {
	now := time.Now()
	return !now.Before(until) || !now.Round(0).Before(until.Round(0))
}

// Ended is why the lease is over; nil while it is not.
func (l *Lease) Ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

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
