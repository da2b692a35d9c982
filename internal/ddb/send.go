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
}

// settleFor bounds the one detached attempt after a cancellation.
const settleFor = 3 * time.Second

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

func (s *Sender) send(ctx context.Context, op string, opt Options, call func(context.Context, *attempt) (Item, error)) (res Result) {
	timeout := s.Timeout
	if opt.Timeout > 0 && opt.Timeout < timeout {
		timeout = opt.Timeout
	}
	ctx, end := s.Observe.start(ctx, op, s.Table)
	defer func() { end(res.Outcome, res.Err) }()
	if opt.Taking && ctx.Err() == nil {
		caller := ctx
		longer, cancel := Lingering(ctx, Settle)
		defer cancel()
		defer func() {
			if res.Err != nil && caller.Err() != nil {
				res.Err = Because(CtxError(caller), res.Err)
			}
		}()
		ctx = longer
	}

	var a attempt
	release := noToken
	res = Result{Clean: true, Sent: time.Now()}
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return s.cancelled(ctx, op, opt, timeout, &a, res, call)
		}
		if s.once(ctx, timeout, op, &a, &res, call) {
			_ = release(nil)
			return res
		}
		kind := a.classify(res.Err)
		if kind == ambiguous {
			res.Clean = false
		}
		res.Err = s.explain(op, &a, res.Err)
		if ctx.Err() != nil {
			continue // the top of the loop settles it
		}
		policy := a.retryer()
		res.Limit = policy.MaxAttempts()
		_ = release(res.Err)
		if kind == refused || (opt.Once && !res.Clean) || (res.Limit > 0 && n >= res.Limit) {
			return res.giveUp()
		}
		token, err := policy.GetRetryToken(ctx, res.Err)
		if err != nil {
			res.Err = errors.Join(res.Err, err)
			return res.giveUp()
		}
		release = token
		delay, err := policy.RetryDelay(n, res.Err)
		if err != nil {
			res.Err = errors.Join(res.Err, err)
			return res.giveUp()
		}
		s.Observe.retry(ctx, op, s.Table, n, delay, res.Err)
		Pause(ctx, delay)
	}
}

// once makes one attempt; true means that it was answered by a yes or a no.
func (s *Sender) once(ctx context.Context, timeout time.Duration, op string, a *attempt, res *Result, call func(context.Context, *attempt) (Item, error)) bool {
	actx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a.sent = false
	item, err := call(actx, a)
	s.Observe.request(ctx, op, s.Table)
	if err == nil {
		res.Outcome, res.Item, res.Err = Applied, item, nil
		return true
	}
	image, failed := conditionFailed(err)
	images, cancelled := transactionFailed(err)
	if failed || cancelled {
		res.Outcome, res.Image, res.Images, res.Err = Condition, image, images, nil
		// A client that drops options repeats by the SDK, unseen from here.
		res.Clean = res.Clean && a.opted
		return true
	}
	res.Err = err
	return false
}

// cancelled ends a call whose context is done. If a write may have landed, one
// short attempt on a detached context finds out: repeating it is harmless, and
// its answer is the verdict on all attempts.
func (s *Sender) cancelled(ctx context.Context, op string, opt Options, timeout time.Duration, a *attempt, res Result, call func(context.Context, *attempt) (Item, error)) Result {
	cause := CtxError(ctx)
	if res.Clean || opt.NoSettle || opt.Taking || opt.Once {
		res.Err = fmt.Errorf("%s on table %q: %w", op, s.Table, cause)
		return res.giveUp()
	}
	detached := context.WithoutCancel(ctx)
	if s.once(detached, min(timeout, settleFor), op, a, &res, call) {
		return res
	}
	res.Err = Because(cause, s.explain(op, a, res.Err))
	return res.giveUp()
}

// giveUp ends a call without an answer.
func (r Result) giveUp() Result {
	r.Outcome = Unknown
	if r.Clean {
		r.Outcome = Refused
	}
	return r
}

// explain says which table at which endpoint was asked: a wrong region or
// endpoint is the usual reason for a missing table or refused credentials.
func (s *Sender) explain(op string, a *attempt, err error) error {
	where := a.host
	if a.opted && !a.sent {
		where, err = "nothing was sent", &UnsentError{err}
	}
	if a.region != "" {
		where += ", region " + a.region
	}
	return fmt.Errorf("%s on table %q (%s): %w", op, s.Table, where, err)
}

// CtxError is the error of a context that is done, joined with its cause where
// somebody gave one.
func CtxError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return Because(err, cause)
}

// Pause waits for d or until ctx is done, whichever is first.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
