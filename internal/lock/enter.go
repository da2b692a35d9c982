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
// a failed condition if it had no answer, and a look beside it tells enough: that it has
// the lock, or a place whose turn is near. That place may be another's, for entries are
// short, so its caller leaves it and comes again under another.
func (q *queued) enter(ctx context.Context, in *dynamodb.UpdateItemInput, opt ddb.Options) ddb.Result {
	patience := max(late(q.forecast.Learned, enqueueTripsEven, enqueueTripsUneven), leastPatience)
	if q.forecast.Trip == 0 || patience >= opt.Timeout {
		return q.Core.Update(ctx, in, opt) // nothing is known
	}
	longer, stop := ddb.WithGrace(ctx, ddb.Settle)
	defer stop()
	sending, cut := context.WithCancel(longer)
	opt.AwaitAnswer, opt.NoGrace = false, true // it is longer that waits for the answer
	var seen ddb.Item
	looked := make(chan struct{})
	beside := time.AfterFunc(patience, func() {
		defer close(looked)
		if seen = q.lookBeside(sending, patience/looksAPatience); seen != nil {
			cut()
		}
	})
	res := q.Core.Update(sending, in, opt)
	if cut(); !beside.Stop() {
		<-looked
	}
	if seen == nil || res.Outcome == ddb.Applied || res.Outcome == ddb.Condition {
		return res
	}
	return ddb.Result{Outcome: ddb.Condition, Image: seen, Sent: res.Sent, Limit: res.Limit}
}

// lookBeside looks at the item until ctx ends, or an image tells what to do.
func (q *queued) lookBeside(ctx context.Context, every time.Duration) ddb.Item {
	for ctx.Err() == nil {
		res := q.Core.Read(ctx, q.Raw, ddb.Options{Timeout: q.locker.glance(), Single: true})
		if res.Outcome == ddb.Applied && q.tells(res.Item, every) {
			return res.Item
		}
		ddb.Sleep(ctx, every)
	}
	return nil
}

// tells reports whether an image is worth more than the answer to the enqueue, which may
// come yet: it shows the lock in our hands, or a place that may have its turn before the
// look after the next one.
func (q *queued) tells(image ddb.Item, every time.Duration) bool {
	_, ahead, there := q.Core.ParseQueue(image).Find(q.entry)
	return !q.notTaken(image) || there && time.Duration(len(ahead))*q.forecast.Turn <= 2*every+3*q.forecast.Trip
}
