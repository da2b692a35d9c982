package ddb

import (
	"context"
	"errors"
	"time"
)

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
	if c.opt.Conflicts && c.res.Clean && Conflicted(c.res.Err) || kind == refused || kind == spent || c.opt.Single || c.opt.Once && !c.res.Clean {
		c.giveUp(c.res.Err)
		return false
	}
	// A client that repeats by itself, out of sight, has slept and tried already.
	visible := !c.seen.hidden()
	if visible && c.ongoing < MostOngoing && Ongoing(c.res.Err) {
		c.ongoing++
		c.sleep(ctx, n, c.soon.Next(time.Now(), time.Time{}))
		return true
	}
	if visible && c.opt.Holding && Throttled(c.res.Err) && time.Now().Before(c.slept) {
		c.between++
		c.sleepShortly(ctx, n, time.Until(c.slept))
		return true
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
	if !c.opt.Holding && c.opt.Sending.lapsed(delay) { // else it sleeps for less
		return c.decides(ctx, n, c.res.Err) // behind that sleep it would be too late
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

// MostOngoing is how often a write is repeated because a transaction is at its item.
// That takes milliseconds: the policy, which begins with a second, and ends after
// three attempts, would wait for too long, and for too few.
const MostOngoing = 16
