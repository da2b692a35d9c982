package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

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
		return l.kind.Describe(err)
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

// renew sends one renewal. The caller holds op.
func (l *Lease) renew(ctx context.Context) error {
	if why := l.Ended(); why != nil {
		return l.kind.Describe(why)
	}
	if cause := l.Cause(); cause != nil {
		return l.kind.Describe(cause)
	}
	asked, until := l.NextEnd()
	if err := l.kind.Renew(ctx, until); err != nil {
		return err
	}
	l.Renewed(asked)
	if cause := l.Cause(); cause != nil { // somebody has been told meanwhile that it is over
		return l.kind.Describe(cause)
	}
	return nil
}

// NextEnd is the end that a renewal writes which is sent now, and the time from
// which its deadline counts. Those who watch a hold without trusting clocks look
// for its end: it grows with every renewal, even if the wall clock was set back.
// The caller holds op.
func (l *Lease) NextEnd() (asked, until time.Time) {
	asked = time.Now() // before the end is reckoned
	if l.cfg.Length == 0 {
		return asked, ddb.Never()
	}
	now := l.cfg.Clock()
	l.next, l.sent = now.Sub(asked), ddb.Later(now.Add(l.cfg.Length), l.sent)
	return asked, l.sent
}

// Renewed moves the end to a full lease from when the renewal was sent. A lease that is over
// stays so. The caller holds op.
func (l *Lease) Renewed(asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.ahead = asked.Add(l.cfg.Length), l.next
	if l.over == nil {
		l.failed, l.claim = nil, 0
		l.arm()
	}
}

// End sends the write that ends the lease until it has a verdict, as long as ctx
// allows and the deadline has not passed; why is the cause of the context's end.
// send also says whether a refusal is worth another try. judge returns nil if
// the hold is given back by the write. After any other verdict nobody renews the
// hold, which ends with its lease at the latest, and End may be called again. The
// error of what has ended already is why it has.
func (l *Lease) End(ctx context.Context, why error, send func() (res ddb.Result, again bool), judge func(ddb.Result) error) error {
	if err := l.BeginLast(ctx); err != nil { // another call that ends it is under way
		l.Forget(why)
		return l.kind.Describe(fmt.Errorf("%w: %w", repo.ErrOutcomeUnknown, err))
	}
	defer l.Done()
	if ended := l.Ended(); ended != nil {
		return l.kind.Describe(ended)
	}
	l.Halt()
	defer l.Forget(why) // also if the client panics; what is over already stays so
	repetition := ddb.Repetition{Pause: l.cfg.Pause, Clean: !l.inDoubt, Late: l.Expired}
	l.inDoubt = true
	res, passes := send()
	for repetition.Again(ctx, &res, passes) {
		res, passes = send()
	}
	l.inDoubt = !res.Clean
	err := judge(res)
	if err == nil {
		l.Finish(why)
	}
	return err
}

// Missing judges a hold that is found to be gone by whoever looked for it: it was
// lost, unless a write of its own that had no answer has ended it. The caller
// holds op.
func (l *Lease) Missing() error {
	if why := l.Ended(); why != nil {
		return l.kind.Describe(why)
	}
	if l.inDoubt {
		l.Finish(repo.ErrReleased)
		return l.kind.Describe(repo.ErrReleased)
	}
	return l.Lose()
}

// Gone is Missing for who has seen, beside a request of its own, that the hold is
// gone.
func (l *Lease) Gone(ctx context.Context) error {
	if err := l.BeginLast(ctx); err != nil {
		return l.kind.Describe(fmt.Errorf("%w: %w", repo.ErrLockLost, err))
	}
	defer l.Done()
	return l.Missing()
}

// Describe says of an error which hold it is about.
func (l *Lease) Describe(err error) error { return l.kind.Describe(err) }
