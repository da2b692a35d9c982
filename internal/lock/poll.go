package lock

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// How those who wait in the queue meet a network that loses messages: what they
// do not hear of in time is everybody's time.

// poll reads the item: nil if there was no answer, and another look may have one.
//
// It is given up, and repeated, after the time between two looks: to whom the
// lock is handed over meanwhile, it has a grace to notice. Twice that after one
// without an answer, and so on: the network may be slow. Who has looked for a lease
// without an answer gives up.
func (q *queued) poll(ctx context.Context) (ddb.Item, error) {
	asked := time.Now()
	return q.answer(ctx, look{asked, q.Core.Read(ctx, q.Raw, ddb.Options{Timeout: doubled(q.locker.glance(), q.failed), Single: true})})
}

// answer is what a look has shown: nil if it had no answer, and another may have one.
// Looks that were under way at once, and are lost, are lost to one fault.
func (q *queued) answer(ctx context.Context, a look) (ddb.Item, error) {
	switch {
	case a.Outcome == ddb.Applied:
		q.failed = 0
		if a.Item == nil {
			return ddb.Item{}, nil
		}
		return a.Item, nil
	case ctx.Err() != nil:
		return nil, a.Err
	}
	if q.failed == 0 {
		q.silent = a.asked
	}
	if q.failed == 0 || !a.asked.Before(q.unheard) {
		q.failed, q.unheard = q.failed+1, time.Now()
	}
	if !a.Again || time.Since(q.silent) >= q.locker.span() {
		return nil, a.Err
	}
	return nil, nil // says that nothing is known
}

// repeats is how a write is sent that others wait for if it is applied, and that
// can be repeated: without an answer it is repeated after a grace, then after
// twice that, and so on, as often as the client's policy allows. One that was
// handed the lock but does not know it yet costs the others no more than a grace.
type repeats struct {
	sent      int // attempts
	n         int // those that count for the policy
	ongoing   int // those refused because a transaction was at the item: a matter of milliseconds
	began     time.Time
	ambiguous bool // an attempt may have been applied
	unjudged  bool // an attempt was refused without a look at the item
	pause     ddb.Backoff
}

// options are those of the next attempt.
func (r *repeats) options(c *Config) ddb.Options {
	return ddb.Options{Timeout: min(doubled(c.grace(), r.n), c.span()/3), AwaitAnswer: true, Single: true, Absence: true}
}

// again takes in the result of an attempt, and sleeps before the next one. False:
// there is none, and the result is now about all of them.
func (r *repeats) again(ctx context.Context, c *Config, res *ddb.Result) bool {
	if r.sent++; r.sent == 1 {
		r.began, r.pause = time.Now(), ddb.Backoff{Min: c.Wait.Min, Max: c.glance()}
	}
	switch {
	case ddb.Ongoing(res.Err) && r.ongoing < ddb.MostOngoing:
		r.ongoing++
	case res.Limit != 1 && ddb.Throttled(res.Err) && time.Since(r.began) < c.span()/3:
		// The sleeps here are shorter than the policy's, so its attempts would be used
		// up before a busy partition has room.
	default:
		r.n++
	}
	r.ambiguous, r.unjudged = r.ambiguous || !res.Clean, r.unjudged || res.Unjudged
	if res.Again && ctx.Err() == nil && (res.Limit == 0 || r.n < res.Limit) {
		ddb.Sleep(ctx, r.pause.Next(time.Now(), time.Time{}))
		return true
	}
	res.Unjudged = r.unjudged
	if res.Clean = !r.ambiguous; res.Outcome == ddb.Refused && r.ambiguous {
		res.Outcome = ddb.Unknown
	}
	return false
}

// doubled is d, doubled n times.
func doubled(d time.Duration, n int) time.Duration { return d << min(n, 10) }
