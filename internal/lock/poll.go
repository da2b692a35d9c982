package lock

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// How those who wait in the queue meet a network that loses messages: what they
// do not hear of in time is everybody's time.

// poll reads the item: nil if there was no answer, and another look may have one.
//
// It is given up, and repeated, after the time between two looks: to whom the
// lock is handed over meanwhile, it has a grace to notice. Twice that after one
// without an answer, and so on: the network may be slow. Who had no answer for
// a lease gives up.
func (q *queued) poll(ctx context.Context) (ddb.Item, error) {
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
	if q.failed++; !res.Again || time.Since(q.lastNotMine) >= q.locker.Lease {
		return nil, repo.Classify(res.Err)
	}
	return nil, nil // says that nothing is known
}

// sendUntilAnswered sends a write that others wait for if it is applied, and that can be
// repeated: without an answer it is repeated after a grace, then after twice
// that, and so on, as often as the client's policy allows. One that was handed
// the lock but does not know it yet costs the others no more than a grace.
func (c *Config) sendUntilAnswered(ctx context.Context, send func(ddb.Options) ddb.Result) ddb.Result {
	pause := ddb.Backoff{Min: c.Wait.Min, Max: c.glance()}
	clean := true
	for n := 0; ; n++ {
		res := send(ddb.Options{Timeout: min(doubled(c.grace(), n), c.Lease/3), AwaitAnswer: true, Single: true, Absence: true})
		clean = clean && res.Clean
		if !res.Again || ctx.Err() != nil || res.Limit > 0 && n+1 >= res.Limit {
			if res.Clean = clean; res.Outcome == ddb.Refused && !clean {
				res.Outcome = ddb.Unknown
			}
			return res
		}
		ddb.Sleep(ctx, pause.Next(time.Now(), time.Time{}))
	}
}

// doubled is d, doubled n times.
func doubled(d time.Duration, n int) time.Duration { return d << min(n, 10) }
