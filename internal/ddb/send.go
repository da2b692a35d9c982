package ddb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// call is one call: a request over all its attempts.
type call struct {
	*Table
	op      string
	opt     Options
	timeout time.Duration // of one attempt
	do      func(context.Context, *attempt) (Item, error)
	caller  context.Context
	attempt *attempt
	seen    sight             // of the attempt before
	release func(error) error // gives back what the policy lent for it
	short   Backoff           // with Options.Holding
	slept   time.Time         // with Options.Holding: until when the policy's present sleep would last
	between int               // attempts made before that, which the policy does not count
	ended   time.Time         // when the policy gave the call up
	why     error             // with what it did
	ongoing int               // attempts that a transaction under way has refused
	soon    Backoff           // after those
	res     Result
	told    telemetry.Request
	first   attempt // room for the usual one
}

// send makes attempts until one is answered, or the policy says that it is
// enough.
func (t *Table) send(ctx context.Context, op string, opt Options, do func(context.Context, *attempt) (Item, error)) Result {
	c := &call{Table: t, op: op, opt: opt, timeout: t.Timeout, do: do, release: noToken, res: Result{Clean: true, Sent: time.Now()}}
	if opt.Timeout > 0 && opt.Timeout < c.timeout {
		c.timeout = opt.Timeout
	}
	c.short = Backoff{Min: shortest, Max: c.timeout}
	if opt.Judge != nil {
		c.short.Min = shortestJudged
	}
	c.soon = Backoff{Min: shortest / 2, Max: 5 * shortest}
	c.begin()
	ctx, c.told = t.Observe.Request(ctx, op)
	c.caller = ctx
	if opt.AwaitAnswer && ctx.Err() == nil {
		longer, cancel := withGrace(ctx, Settle)
		defer cancel()
		ctx = longer
	}
	for n := 1; ; n++ {
		if c.left(ctx) {
			c.cancelled(ctx)
			break
		}
		if c.tooLate() {
			break
		}
		if c.once(ctx, c.patience()) {
			_ = c.release(nil)
			break
		}
		if !c.repeats(ctx, n) {
			c.res.Err = Join(CtxError(c.caller), c.res.Err) // who has left hears of both
			break
		}
	}
	c.end()
	c.told.End(c.seen.host, c.seen.region, c.res.Outcome == Condition, c.res.Err)
	c.res.Err = t.Classify(c.res.Err)
	return c.res
}

// advance begins the next attempt, and reports whether it may have another beside it: the
// first one may.
func (c *call) advance() (hedges bool) {
	if c.attempt != nil {
		c.attempt = c.attempt.next()
		return false
	}
	c.attempt = &c.first
	return c.opt.Hedge.After > 0
}

// once makes one attempt; true means that it was answered by a yes or a no.
func (c *call) once(ctx context.Context, timeout time.Duration) bool {
	actx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	defer hurry(actx, cancel)()
	var item Item
	var err error
	if hedges := c.advance(); hedges {
		c.seen, item, err = c.hedged(actx)
	} else {
		item, err = c.do(actx, c.attempt)
		c.seen = c.attempt.judged()
	}
	res := &c.res
	if unproven := c.unproven(c.op, &c.seen, err); unproven != nil {
		res.Err = unproven
		return false
	}
	if err != nil {
		image, failed := conditionFailed(err)
		images, cancelled := transactionFailed(err)
		if !failed && !cancelled {
			res.Err = err
			return false
		}
		c.saw(image)
		res.Outcome, res.Image, res.Images = Condition, image, images
	} else {
		c.saw(item)
		res.Outcome, res.Item = Applied, item
	}
	// A client that repeats out of sight, or by itself, answers for the last
	// request alone.
	res.Clean = res.Clean && !c.seen.hidden()
	if !c.endpoint.grants.Load() {
		c.endpoint.grants.Store(true)
	}
	res.Err, res.Again = nil, false
	return true
}

// ErrJudged is the cause with which the context of a write ends of which its caller has a
// verdict, and need not hear any more: its outcome is unknown, whatever was sent.
var ErrJudged = errors.New("the write is judged")

// cancelled ends a call whose context is done. If a write may have landed, one
// short attempt on a detached context finds out: repeating it is harmless, and
// its answer is the verdict on all attempts.
func (c *call) cancelled(ctx context.Context) {
	cause := CtxError(c.caller)
	if errors.Is(context.Cause(c.caller), ErrJudged) {
		c.res.Clean = false
		c.giveUp(ErrJudged)
		return
	}
	if unsent := (*UnsentError)(nil); errors.As(c.res.Err, &unsent) && c.res.Clean {
		unsent.Cancelled = c.leaves()
		c.giveUp(Join(cause, c.res.Err)) // with what it waited for
		return
	}
	if c.res.Clean || cleans(ctx) || c.opt.NoGrace || c.opt.AwaitAnswer || c.opt.Once || c.opt.Sending.lapsed(settleFor) {
		c.giveUp(fmt.Errorf("%s on table %q: %w", c.op, c.Name, cause))
		return
	}
	if !c.once(context.WithoutCancel(ctx), min(c.timeout, settleFor)) {
		c.giveUp(Join(cause, c.explain(c.res.Err)))
	}
}

// leaves reports whether the caller has cancelled the call.
func (c *call) leaves() bool { return errors.Is(c.caller.Err(), context.Canceled) }

// giveUp ends a call without an answer.
func (c *call) giveUp(err error) {
	c.res.Err, c.res.Outcome = err, Unknown
	if c.res.Clean {
		c.res.Outcome = Refused
	}
}

// explain says which table at which endpoint was asked: a wrong region or
// endpoint is the usual reason for a missing table or refused credentials. Values are
// taken out of the answer first: what wraps an error keeps the text that it had.
func (c *call) explain(err error) error {
	redact.Answer(err)
	seen := &c.seen
	where := seen.host
	switch {
	case seen.unsent():
		where, err = "nothing was sent", &UnsentError{err, c.leaves()}
	case seen.sent > 1:
		where += fmt.Sprintf(", sent %d times by the client itself", seen.sent)
	case seen.hidden():
		where = "sent out of sight, by a client that drops or replaces the call's options"
	}
	if seen.region != "" {
		where += ", region " + seen.region
	}
	return fmt.Errorf("%s on table %q (%s): %w", c.op, c.Name, where, err)
}

// UnsentError is why a request never left the process: no credentials, no
// region, no endpoint.
type UnsentError struct {
	Err       error
	Cancelled bool // for its caller has left
}

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }
