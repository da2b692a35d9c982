package lock

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
)

// An enqueue may stall, or its answer. The lock may be handed to its place meanwhile, and
// then all wait until its caller hears of it. So who has had no answer for so many trips
// looks at the item beside it.
const (
	enqueueTripsEven   = 5
	enqueueTripsUneven = 8
	looksAPatience     = 4 // so many follow in the time after which the first is sent
)

// enter sends a request that enters the queue, or takes a free lock. Its result is that of
// a failed condition if a look beside it has shown enough: that it has the lock, or a place
// whose turn is near. That place may be another's, for entries are short, so it was left,
// and its caller comes again under another.
func (q *queued) enter(ctx context.Context, in *dynamodb.UpdateItemInput, opt ddb.Options) ddb.Result {
	patience := max(late(q.forecast.Learned, enqueueTripsEven, enqueueTripsUneven), leastLost)
	if q.forecast.Trip == 0 || patience >= opt.Timeout {
		return q.Core.Update(ctx, in, opt) // nothing is known
	}
	longer, stop := ddb.WithGrace(ctx, ddb.Settle)
	defer stop()
	sending, cut := context.WithCancel(longer)
	opt.AwaitAnswer, opt.NoGrace = false, true // it is longer that waits for the answer
	defer cut()                                // also if the client panics
	looked := make(chan ddb.Item, 1)
	beside := time.AfterFunc(patience, func() {
		var seen ddb.Item
		defer func() { looked <- seen }() // also if the client ends the goroutine: the answer may come yet
		seen = q.lookBeside(sending, longer, patience/looksAPatience)
		cut()
	})
	res := q.Core.Update(sending, in, opt)
	if cut(); beside.Stop() {
		return res
	}
	if seen := <-looked; seen != nil {
		return ddb.Result{Outcome: ddb.Condition, Image: seen, Sent: res.Sent, Limit: res.Limit}
	}
	return res
}

// lookBeside looks at the item until the enqueue is over, which ctx is, and returns what
// shows the lock in our hands, or a place that was left since, or may have been. A place
// that was handed the lock meanwhile is not: the answer to the enqueue will tell whose it is.
func (q *queued) lookBeside(ctx, leaving context.Context, every time.Duration) ddb.Item {
	for ctx.Err() == nil {
		res := q.Core.Read(ctx, q.Raw, ddb.Options{Timeout: q.locker.glance(), Single: true})
		place, ahead, there := q.Core.ParseQueue(res.Item).Find(q.entry)
		q.place = place
		if !q.notTaken(res.Item) || there && q.near(len(ahead), every) && q.vacate(leaving).Outcome != ddb.Condition {
			return res.Item
		}
		ddb.Sleep(ctx, every)
	}
	return nil
}

// near reports whether a place with so many before it may have its turn before the look
// after the next one: else the answer to the enqueue may come yet.
func (q *queued) near(ahead int, every time.Duration) bool {
	return time.Duration(ahead)*q.forecast.Turn <= 2*every+3*q.forecast.Trip
}
