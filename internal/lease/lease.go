package lease

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
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
	reported bool          // guarded by mu, and here for the same reason: the deadline is told at once

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
	at        time.Duration // guarded by mu: of a slot, or of a try after a failure, since the process began: no clock moves it; 0: neither is waited for

	began time.Duration    // guarded by mu: when it was taken, since the process began; 0: nobody asked
	trace *telemetry.Trace // guarded by mu: where it was taken; nil: nobody listens
	held  context.Context  // guarded by mu: of what else was held there; nil before Taken
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
	held := nesting.Held(ctx)
	l.mu.Lock()
	l.held = held
	l.mu.Unlock()
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

// Context is cancelled, with the cause, when the lease is over. It tells of what else was
// held where this was taken. The clock is asked first: one of the program's own may panic.
func (l *Lease) Context() context.Context {
	late := false
	defer func() {
		if late {
			l.Expire()
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched == nil {
		if late = l.over == nil && l.passed(); !late {
			l.tells()
		}
		l.watched = &watched{}
		l.watched.ctx, l.watched.cancel = context.WithCancelCause(cmp.Or(l.held, context.Background()))
		if l.over != nil {
			l.watched.cancel(l.over)
		}
	}
	return l.watched.ctx
}

// Report lets the deadline be told at once, as Context does, without the cost of one:
// where somebody works under the lease.
func (l *Lease) Report() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tells()
}

// tells lets the timer tell of the deadline: from now on somebody is to hear of it. The
// caller holds mu.
func (l *Lease) tells() {
	if l.reported || l.over != nil {
		return
	}
	if !l.renewed() && !l.halted && l.cfg.Length > 0 { // else it has a timer, or needs none
		l.wake(l.left())
	}
	l.reported = true
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
