package ddb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/direct"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// Table sends requests for one table.
type Table struct {
	Client  Client
	Name    string
	Timeout time.Duration       // of one attempt
	Observe *telemetry.Observer // nil: nobody is told
	// Classify gives an error its meaning in the words of users, where it leaves
	// this package or package protocol: once, and nowhere else. Never nil.
	Classify func(error) error
	// Saw is shown each item that an answer has brought; nil: nobody wants to see them.
	Saw func(Item)

	past      past
	endpoint  endpoint
	Partition string   // name of the partition key
	Sort      string   // name of the sort key, "" without one
	Mapped    []string // attributes of the user's type, keys left out
}

// Update sends a conditional UpdateItem.
func (t *Table) Update(ctx context.Context, in *dynamodb.UpdateItemInput, opt Options) Result {
	return t.withImage(ctx, in.Key, opt, t.send(ctx, "UpdateItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out := &dynamodb.UpdateItemOutput{}
		left, err := a.directly(ctx, t.direct(in.Key), direct.UpdateItem, in, out)
		if left != nil {
			out, err = t.Client.UpdateItem(left, in, a.options)
			err = a.learned(ctx, err)
		}
		if err != nil {
			return nil, err
		}
		a.answered(out.ResultMetadata)
		if in.ReturnValues == types.ReturnValueAllNew && len(out.Attributes) == 0 {
			return nil, &ReplyError{errNoAttributes} // the item has at least its key
		}
		return out.Attributes, nil
	}))
}

// Delete sends a conditional DeleteItem.
func (t *Table) Delete(ctx context.Context, in *dynamodb.DeleteItemInput, opt Options) Result {
	return t.withImage(ctx, in.Key, opt, t.send(ctx, "DeleteItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := t.Client.DeleteItem(ctx, in, a.options)
		if err == nil {
			a.answered(out.ResultMetadata)
		}
		return nil, err
	}))
}

// Get reads an item with a consistent read. It cannot change anything, so the
// verdict of its error is always "not applied".
func (t *Table) Get(ctx context.Context, key Item) (Item, error) {
	res := t.Read(ctx, key, Options{})
	return res.Item, res.Err
}

// Read is Get with options. Its Result has an item, or the error.
func (t *Table) Read(ctx context.Context, key Item, opt Options) Result {
	consistent := true
	in := &dynamodb.GetItemInput{TableName: &t.Name, Key: key, ConsistentRead: &consistent}
	opt.NoGrace = true
	return t.send(ctx, "GetItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out := &dynamodb.GetItemOutput{}
		left, err := a.directly(ctx, t.direct(in.Key), direct.GetItem, in, out)
		if left != nil {
			out, err = t.Client.GetItem(left, in, a.options)
			err = a.learned(ctx, err)
		}
		if err != nil {
			return nil, err
		}
		a.answered(out.ResultMetadata)
		return out.Item, nil
	})
}

// saw shows an item to whoever wants to see it.
func (t *Table) saw(item Item) {
	if t.Saw != nil && len(item) > 0 {
		t.Saw(item)
	}
}

// ReadWith sends a request that changes no item, such as a query or the description
// of a table, by the same policy and with the same explanation of errors.
func (t *Table) ReadWith(ctx context.Context, op string, call func(context.Context, func(*dynamodb.Options)) error) error {
	return t.send(ctx, op, Options{NoGrace: true}, func(ctx context.Context, a *attempt) (Item, error) {
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
	c.soon = Backoff{Min: shortest / 2, Max: 5 * shortest}
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
		if c.once(ctx, c.patience()) {
			_ = c.release(nil)
			break
		}
		if !c.repeats(ctx, n) {
			c.res.Err = Join(CtxError(c.caller), c.res.Err) // who has left hears of both
			break
		}
	}
	c.told.End(c.seen.host, c.seen.region, c.res.Outcome == Condition, c.res.Err)
	c.res.Err = t.Classify(c.res.Err)
	return c.res
}

// repeats judges the nth attempt, which was not answered, and sleeps before the
// next one; false: there is none, and the call has its result.
func (c *call) repeats(ctx context.Context, n int) bool {
	kind := c.seen.classify(c.res.Err)
	if kind == ambiguous || kind == spent || c.seen.hidden() {
		c.res.Clean = false
	}
	c.res.Err = c.explain(c.res.Err)
	if c.left(ctx) {
		return true // no other is sent: cancelled settles it
	}
	policy := c.seen.retryer()
	c.res.Limit, c.res.Again = policy.MaxAttempts(), kind == again || kind == ambiguous
	_ = c.release(c.res.Err)
	c.release = noToken
	// A client that repeats by itself, out of sight, has slept and tried already.
	if !c.opt.Single && !c.opt.Conflicts && c.ongoing < MostOngoing && Ongoing(c.res.Err) && !c.seen.hidden() {
		c.ongoing++
		c.sleep(ctx, n, c.soon.Next(time.Now(), time.Time{}))
		return true
	}
	if c.opt.Holding && !c.opt.Single && !c.seen.hidden() && Throttled(c.res.Err) && time.Now().Before(c.slept) {
		c.between++
		c.sleepShortly(ctx, n, time.Until(c.slept))
		return true
	}
	if c.opt.Conflicts && c.res.Clean && Conflicted(c.res.Err) || kind == refused || kind == spent || c.opt.Single || (c.opt.Once && !c.res.Clean) {
		c.giveUp(c.res.Err)
		return false
	}
	counted := n - c.ongoing - c.between // by the policy
	if !c.ended.IsZero() || c.res.Limit > 0 && counted >= c.res.Limit {
		return c.decides(ctx, n, c.res.Err)
	}
	token, err := policy.GetRetryToken(ctx, c.res.Err)
	var delay time.Duration
	if err == nil {
		c.release = token
		delay, err = policy.RetryDelay(counted, c.res.Err)
	}
	if err != nil {
		return c.decides(ctx, n, errors.Join(c.res.Err, err))
	}
	if c.opt.Holding {
		c.slept = time.Now().Add(delay)
		c.sleepShortly(ctx, n, delay)
		return true
	}
	c.sleep(ctx, n, delay)
	return true
}

// decides sleeps before another attempt of a write in doubt that the client's policy
// has given up with err; false: there is none. To send the same once more tells what
// became of it, while no caller could find that out by looking later: others may have
// covered its traces by then, or it may still be on its way.
func (c *call) decides(ctx context.Context, n int, err error) bool {
	if c.ended.IsZero() {
		c.ended, c.why = time.Now(), err
	}
	left := Settle - time.Since(c.ended)
	if !c.opt.Decide || c.res.Clean || left <= 0 {
		c.giveUp(c.why) // and not that the last attempt had little time
		return false
	}
	c.sleepShortly(ctx, n, left)
	return true
}

// patience is how long the next attempt may last.
func (c *call) patience() time.Duration {
	if c.ended.IsZero() {
		return c.timeout
	}
	return min(c.timeout, max(shortest, Settle-time.Since(c.ended)))
}

// sleepShortly sleeps before another attempt of a call behind which others wait, for
// most at the longest.
func (c *call) sleepShortly(ctx context.Context, n int, most time.Duration) {
	c.sleep(ctx, n, min(most, c.short.Next(time.Now(), time.Time{})))
}

// sleep sleeps after the nth attempt. A caller that leaves meanwhile is waited for no
// longer where nothing is under way of which it would have to hear.
func (c *call) sleep(ctx context.Context, n int, delay time.Duration) {
	c.told.Again(n, delay, c.res.Err)
	if c.res.Clean {
		ctx = c.caller
	}
	Sleep(ctx, delay)
}

// left reports whether the call is over before its next attempt: with its context, or
// with its caller's, if nothing that it sent may have been applied.
func (c *call) left(ctx context.Context) bool {
	return ctx.Err() != nil || c.res.Clean && c.caller.Err() != nil
}

// shortest bounds the first sleep of a call behind which others wait. The SDK's
// policy begins with up to two seconds where it is throttled, which is too much of a
// lease, and of everybody's time, while a partition has room again after
// milliseconds. As long as the policy would sleep, a throttled call is tried again
// after short sleeps, and only then once more by the policy: three short sleeps are
// over before a busy partition has room, and with short ones alone a call would give
// up much sooner than its client's policy says.
const shortest = 20 * time.Millisecond

// MostOngoing is how often a write is repeated because a transaction is at its item.
// That takes milliseconds: the policy, which begins with a second, and ends after
// three attempts, would wait for too long, and for too few.
const MostOngoing = 16

// once makes one attempt; true means that it was answered by a yes or a no.
func (c *call) once(ctx context.Context, timeout time.Duration) bool {
	actx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	defer hurry(actx, cancel)()
	if c.attempt == nil {
		c.attempt = &c.first
	} else {
		c.attempt = c.attempt.next()
	}
	item, err := c.do(actx, c.attempt)
	c.seen = c.attempt.judged()
	res := &c.res
	var image Item
	var images []Image
	var failed, cancelled bool
	if err != nil {
		image, failed = conditionFailed(err)
		images, cancelled = transactionFailed(err)
	}
	if err == nil || failed || cancelled {
		if partial := c.believable(&c.seen); partial != nil {
			res.Err = partial
			return false
		}
		// A client that repeats out of sight, or by itself, answers for the last
		// request alone.
		res.Clean = res.Clean && !c.seen.hidden()
	}
	if err == nil {
		c.saw(item)
		res.Outcome, res.Item, res.Err, res.Again = Applied, item, nil, false
		return true
	}
	if failed || cancelled {
		c.saw(image)
		res.Outcome, res.Image, res.Images, res.Err, res.Again = Condition, image, images, nil, false
		return true
	}
	res.Err = err
	return false
}

// cancelled ends a call whose context is done. If a write may have landed, one
// short attempt on a detached context finds out: repeating it is harmless, and
// its answer is the verdict on all attempts.
func (c *call) cancelled(ctx context.Context) {
	cause := CtxError(c.caller)
	if c.res.Clean || cleans(ctx) || c.opt.NoGrace || c.opt.AwaitAnswer || c.opt.Once {
		c.giveUp(fmt.Errorf("%s on table %q: %w", c.op, c.Name, cause))
		return
	}
	if !c.once(context.WithoutCancel(ctx), min(c.timeout, settleFor)) {
		c.giveUp(Join(cause, c.explain(c.res.Err)))
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
	seen := &c.seen
	where := seen.host
	switch {
	case seen.unsent():
		where, err = "nothing was sent", &UnsentError{err}
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
