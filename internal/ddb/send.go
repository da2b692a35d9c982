package ddb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Sender sends requests for one table.
type Sender struct {
	Client  Client
	Table   string
	Timeout time.Duration // of one attempt
	Observe *Observer     // never nil
}

// Outcome is what became of a conditional write.
type Outcome int

// The outcomes. The zero value is the harmless one.
const (
	Refused   Outcome = iota // certainly not applied; Result.Err says why
	Applied                  // applied
	Condition                // the condition failed; Result.Image shows the item
	Unknown                  // may or may not have been applied
)

// Result is the outcome of one conditional write over all its attempts.
type Result struct {
	Outcome Outcome
	Item    Item      // what an applied write returned
	Image   Item      // the item that failed the condition; empty: none exists
	Images  []Image   // the same for each write of a transaction
	Clean   bool      // no earlier attempt of this call may have been applied
	Sent    time.Time // when the first attempt was sent
	Limit   int       // attempts that the client's policy allows; 0: no limit
	Err     error     // for Refused and Unknown
}

// Options changes how one call is sent.
type Options struct {
	Timeout  time.Duration // of one attempt, if shorter than the sender's
	NoSettle bool          // on cancellation in mid-write, do not repeat to settle it
	Once     bool          // never repeat an attempt that may have been applied
	// Taking says that the write takes something that the caller will not have if
	// its context ends. The answer is then waited for, for Settle: given up in
	// flight, the write could land behind the one that takes it back. Implies
	// NoSettle.
	Taking bool
	// Token is the ClientRequestToken of a transaction; "" makes a new one. Calls
	// with the same token and the same writes are one, for ten minutes.
	Token string
	// Conflicts says that the caller makes the writes anew when another
	// transaction was in the way: it is told at once, unless an earlier attempt
	// may have been applied.
	Conflicts bool
}

// Update sends a conditional UpdateItem.
func (s *Sender) Update(ctx context.Context, in *dynamodb.UpdateItemInput, opt Options) Result {
	return s.send(ctx, "UpdateItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := s.Client.UpdateItem(ctx, in, a.options)
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	})
}

// Delete sends a conditional DeleteItem.
func (s *Sender) Delete(ctx context.Context, in *dynamodb.DeleteItemInput, opt Options) Result {
	return s.send(ctx, "DeleteItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		_, err := s.Client.DeleteItem(ctx, in, a.options)
		return nil, err
	})
}

// Get reads an item with a consistent read. It cannot change anything, so the
// verdict of its error is always "not applied".
func (s *Sender) Get(ctx context.Context, key Item) (Item, error) {
	consistent := true
	in := &dynamodb.GetItemInput{TableName: &s.Table, Key: key, ConsistentRead: &consistent}
	res := s.send(ctx, "GetItem", Options{NoSettle: true}, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := s.Client.GetItem(ctx, in, a.options)
		if err != nil {
			return nil, err
		}
		return out.Item, nil
	})
	if res.Outcome == Applied {
		return res.Item, nil
	}
	return nil, res.Err
}

// Ask sends a request that changes no item, such as a query or the description
// of a table, by the same policy and with the same explanation of errors.
func (s *Sender) Ask(ctx context.Context, op string, call func(context.Context, func(*dynamodb.Options)) error) error {
	return s.send(ctx, op, Options{NoSettle: true}, func(ctx context.Context, a *attempt) (Item, error) {
		return nil, call(ctx, a.options)
	}).Err
}

// UnsentError is why a request never left the process: no credentials, no
// region, no endpoint.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// call is one call: a request over all its attempts.
type call struct {
	*Sender
	op      string
	opt     Options
	timeout time.Duration // of one attempt
	do      func(context.Context, *attempt) (Item, error)
	attempt attempt
	res     Result
}

func (s *Sender) send(ctx context.Context, op string, opt Options, do func(context.Context, *attempt) (Item, error)) Result {
	c := &call{Sender: s, op: op, opt: opt, timeout: s.Timeout, do: do, res: Result{Clean: true, Sent: time.Now()}}
	if opt.Timeout > 0 && opt.Timeout < c.timeout {
		c.timeout = opt.Timeout
	}
	ctx, end := s.Observe.start(ctx, op, s.Table)
	caller, lingers := ctx, opt.Taking && ctx.Err() == nil
	if lingers {
		longer, cancel := Lingering(ctx, Settle)
		defer cancel()
		ctx = longer
	}
	c.run(ctx)
	if lingers && c.res.Err != nil && caller.Err() != nil {
		c.res.Err = Because(CtxError(caller), c.res.Err)
	}
	end(c.res.Outcome, c.res.Err)
	return c.res
}

// run makes attempts until one is answered, or the policy says that it is
// enough.
func (c *call) run(ctx context.Context) {
	release := noToken
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			c.cancelled(ctx)
			return
		}
		if c.once(ctx, c.timeout) {
			_ = release(nil)
			return
		}
		kind := c.attempt.classify(c.res.Err)
		if kind == ambiguous {
			c.res.Clean = false
		}
		c.res.Err = c.explain(c.res.Err)
		if ctx.Err() != nil {
			continue // the top of the loop settles it
		}
		policy := c.attempt.retryer()
		c.res.Limit = policy.MaxAttempts()
		_ = release(c.res.Err)
		if c.opt.Conflicts && c.res.Clean && Conflicted(c.res.Err) || kind == refused || (c.opt.Once && !c.res.Clean) || (c.res.Limit > 0 && n >= c.res.Limit) {
			c.giveUp(c.res.Err)
			return
		}
		token, err := policy.GetRetryToken(ctx, c.res.Err)
		if err != nil {
			c.giveUp(errors.Join(c.res.Err, err))
			return
		}
		release = token
		delay, err := policy.RetryDelay(n, c.res.Err)
		if err != nil {
			c.giveUp(errors.Join(c.res.Err, err))
			return
		}
		c.Observe.retry(ctx, c.op, c.Table, n, delay, c.res.Err)
		Pause(ctx, delay)
	}
}

// once makes one attempt; true means that it was answered by a yes or a no.
func (c *call) once(ctx context.Context, timeout time.Duration) bool {
	actx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c.attempt.sent = false
	item, err := c.do(actx, &c.attempt)
	c.Observe.request(ctx, c.op, c.Table)
	res := &c.res
	if err == nil {
		res.Outcome, res.Item, res.Err = Applied, item, nil
		return true
	}
	image, failed := conditionFailed(err)
	images, cancelled := transactionFailed(err)
	if failed || cancelled {
		res.Outcome, res.Image, res.Images, res.Err = Condition, image, images, nil
		// A client that drops options repeats by the SDK, unseen from here.
		res.Clean = res.Clean && c.attempt.opted
		return true
	}
	res.Err = err
	return false
}

// cancelled ends a call whose context is done. If a write may have landed, one
// short attempt on a detached context finds out: repeating it is harmless, and
// its answer is the verdict on all attempts.
func (c *call) cancelled(ctx context.Context) {
	cause := CtxError(ctx)
	if c.res.Clean || c.opt.NoSettle || c.opt.Taking || c.opt.Once {
		c.giveUp(fmt.Errorf("%s on table %q: %w", c.op, c.Table, cause))
		return
	}
	if !c.once(context.WithoutCancel(ctx), min(c.timeout, settleFor)) {
		c.giveUp(Because(cause, c.explain(c.res.Err)))
	}
}

// giveUp ends a call without an answer.
func (c *call) giveUp(err error) {
	c.res.Err, c.res.Outcome = err, Unknown
	if c.res.Clean {
		c.res.Outcome = Refused
	}
}

// explain says which table at which endpoint was asked: a wrong region or
// endpoint is the usual reason for a missing table or refused credentials.
func (c *call) explain(err error) error {
	a := &c.attempt
	where := a.host
	if a.opted && !a.sent {
		where, err = "nothing was sent", &UnsentError{err}
	}
	if a.region != "" {
		where += ", region " + a.region
	}
	return fmt.Errorf("%s on table %q (%s): %w", c.op, c.Table, where, err)
}
