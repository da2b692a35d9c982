package ddb

import (
	"context"
	"errors"
	"time"
)

// next is what follows an attempt that was not answered.
type next int

const (
	noOther    next = iota // the call is over: another attempt would tell nothing, or must not be
	soon                   // another in a moment: a transaction is at the item, which takes milliseconds
	meanwhile              // another within the policy's sleep, for others wait behind the call
	byPolicy               // another, if the client's policy allows one
	beyondThat             // the policy has given the call up: another only to decide a write in doubt
)

// repeats judges the nth attempt, which was not answered, and sleeps before the
// next one; false: there is none, and the call has its result.
func (c *call) repeats(ctx context.Context, n int) bool {
	kind := c.seen.classify(c.res.Err)
	if kind == ambiguous || kind == spent || c.seen.hidden() {
		c.res.Clean = false
	}
	c.res.Unjudged = c.res.Unjudged || c.unjudged(kind, c.res.Err)
	c.res.Err = c.explain(c.res.Err)
	if c.left(ctx) {
		return true // no other is sent: cancelled settles it
	}
	c.res.Limit, c.res.Again = c.seen.retryer().MaxAttempts(), kind == again || kind == ambiguous
	_ = c.release(c.res.Err)
	c.release = noToken
	switch c.next(kind, n) {
	case noOther:
		c.giveUp(c.res.Err)
		return false
	case soon:
		c.ongoing++
		c.sleep(ctx, n, c.soon.Next(time.Now(), time.Time{}))
	case meanwhile:
		c.between++
		c.sleepShortly(ctx, n, time.Until(c.slept))
		return !c.judged(ctx)
	case byPolicy:
		return c.asPolicySays(ctx, n) && !c.judged(ctx)
	case beyondThat:
		return c.decides(ctx, n, c.res.Err)
	}
	return true
}

// next decides what follows the nth attempt, which failed in a way.
func (c *call) next(kind class, n int) next {
	visible := !c.seen.hidden() // a client that repeats by itself, out of sight, has slept and tried already
	switch {
	case kind == refused, kind == spent, c.lastOfItsCaller():
		return noOther
	case visible && c.ongoing < MostOngoing && Ongoing(c.res.Err):
		return soon
	case visible && c.opt.Holding && Throttled(c.res.Err) && time.Now().Before(c.slept):
		return meanwhile
	case !c.ended.IsZero() || c.res.Limit > 0 && c.counted(n) >= c.res.Limit:
		return beyondThat
	}
	return byPolicy
}

// lastOfItsCaller reports whether the caller wants no other attempt behind the present one.
func (c *call) lastOfItsCaller() bool {
	return c.opt.Single || c.opt.Once && !c.res.Clean || c.opt.Conflicts && c.res.Clean && Conflicted(c.res.Err)
}

// counted are those of n attempts that the client's policy counts.
func (c *call) counted(n int) int { return n - c.ongoing - c.between }

// asPolicySays sleeps before another attempt for as long as the client's policy says;
// false: there is none.
func (c *call) asPolicySays(ctx context.Context, n int) bool {
	policy := c.seen.retryer()
	token, err := policy.GetRetryToken(ctx, c.res.Err)
	var delay time.Duration
	if err == nil {
		c.release = token
		delay, err = policy.RetryDelay(c.counted(n), c.res.Err)
	}
	switch {
	case err != nil:
		return c.decides(ctx, n, errors.Join(c.res.Err, err))
	case c.opt.Holding: // it sleeps for less
		c.slept = time.Now().Add(delay)
		c.sleepShortly(ctx, n, delay)
	case c.opt.Sending.lapsed(delay): // behind that sleep it would be too late
		return c.decides(ctx, n, c.res.Err)
	default:
		c.sleep(ctx, n, delay)
	}
	return true
}

// judged asks whether a throttled write need not be sent again, and ends it then.
func (c *call) judged(ctx context.Context) bool {
	if c.opt.Judge == nil || !Throttled(c.res.Err) || c.left(ctx) || !c.opt.Judge.Judged(ctx) {
		return false
	}
	c.res.Clean = false
	c.giveUp(ErrJudged)
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

// patience is how long an attempt may last.
func (c *call) patience() time.Duration {
	most := c.timeout
	if c.attempt != nil { // the first one may be as slow as it likes
		most = min(most, c.opt.Sending.left())
	}
	if c.ended.IsZero() {
		return most
	}
	return min(most, max(shortest, Settle-time.Since(c.ended)))
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

// shortestJudged bounds the first sleep of a write that is judged before it is sent
// again: it looks at the item while its place in the ring of eight writes is there.
const shortestJudged = shortest / 8

// MostOngoing is how often a write is repeated because a transaction is at its item.
// That takes milliseconds: the policy, which begins with a second, and ends after
// three attempts, would wait for too long, and for too few.
const MostOngoing = 16
