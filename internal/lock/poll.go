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
	if q.failed == 0 {
		q.silent = time.Now()
	}
	res := q.Core.Read(ctx, q.Raw, ddb.Options{Timeout: doubled(q.locker.glance(), q.failed), Single: true})
	switch {
	case res.Outcome == ddb.Applied:
		q.failed = 0
		if res.Item == nil {
			return ddb.Item{}, nil
		}
		return res.Item, nil
	case ctx.Err() != nil:
		return nil, res.Err
	}
	if q.failed++; !res.Again || time.Since(q.silent) >= q.locker.Lease {
		return nil, res.Err
	}
	return nil, nil // says that nothing is known
}

// repeats is how a write is sent that others wait for if it is applied, and that
// can be repeated: without an answer it is repeated after a grace, then after
// twice that, and so on, as often as the client's policy allows. One that was
// handed the lock but does not know it yet costs the others no more than a grace.
type repeats struct {
	n         int  // attempts that count for the policy
	ongoing   int  // those refused because a transaction was at the item: a matter of milliseconds
	ambiguous bool // an attempt may have been applied
	pause     ddb.Backoff
}

// options are those of the next attempt.
func (r *repeats) options(c *Config) ddb.Options {
	return ddb.Options{Timeout: min(doubled(c.grace(), r.n), c.Lease/3), AwaitAnswer: true, Single: true, Absence: true}
}

// again takes in the result of an attempt, and sleeps before the next one. False:
// there is none, and the result is now about all of them.
func (r *repeats) again(ctx context.Context, c *Config, res *ddb.Result) bool {
	if ddb.Ongoing(res.Err) && r.ongoing < ddb.MostOngoing {
		r.ongoing++
	} else {
		r.n++
	}
	r.ambiguous = r.ambiguous || !res.Clean
	if res.Again && ctx.Err() == nil && (res.Limit == 0 || r.n < res.Limit) {
		if r.n+r.ongoing == 1 {
			r.pause = ddb.Backoff{Min: c.Wait.Min, Max: c.glance()}
		}
		ddb.Sleep(ctx, r.pause.Next(time.Now(), time.Time{}))
		return true
	}
	if res.Clean = !r.ambiguous; res.Outcome == ddb.Refused && r.ambiguous {
		res.Outcome = ddb.Unknown
	}
	return false
}

// doubled is d, doubled n times.
func doubled(d time.Duration, n int) time.Duration { return d << min(n, 10) }
