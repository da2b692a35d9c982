package lock

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/stored"
)

// queued is an acquisition that waits in the queue on the item (see
// lockedread's doc.go, "Fair").
type queued struct {
	*acquiring
	enqueue *dynamodb.UpdateItemInput // the enqueue that has no answer yet; nil: the next one is another
	repeats repeats                   // how often it was sent
	entry   string
	place   stored.Entry // where it stood last; before an answer has shown it, a guess
	// What the last image showed that had our entry: order is nil until the answer to
	// its own enqueue has, for another's may be the same.
	order      []string
	lastStolen int64
	sure       time.Time // until then nobody behind us could take over
	// lastHeld is the greatest token under which a look has shown another holder.
	lastHeld int64
	// lastNotMine is before the last request was sent whose answer did not show the
	// lock in our hands: it was transferred later than that.
	lastNotMine time.Time
	// firstSeen is when the hold that is watched came into being, or was last
	// extended, as far as that can be told: those who saw it later than this one
	// did count from no later than a look after it.
	firstSeen time.Time
	forecast  pace.Forecast
	spacing   pace.Spacing
	looks     *looks
	failed    int       // looks without an answer, in a row
	silent    time.Time // when the first of them was sent
	unheard   time.Time // when the last of them was given up
	full      int       // enqueues that found no room, and then nobody on the item, in a row
	// fromOutside is what was seen of the hold while there was no room for an entry.
	fromOutside observation
}

// errNoQueue says that the lock is not one that a queue can form behind: it was
// taken by hand, or never ends, or there is no room.
var errNoQueue = errors.New("no queue behind this lock")

// request makes the request that enters the queue, or takes the lock if it is
// free. It is repeated as it is until it has an answer.
func (q *queued) request() (*dynamodb.UpdateItemInput, ddb.Options) {
	if q.enqueue == nil {
		if q.repeats.ambiguous && q.locker.deletes(q.Request) {
			// A late copy would make the row anew, once it is deleted, and nobody would
			// ever take over the lock.
			q.mayHold = q.mayHold.and(q.id, q.sent, q.locker.landing())
		}
		t := q.newTry()
		t.Row, t.Seen = q.Row, q.seen
		q.enqueue, q.repeats = q.Core.Enqueue(q.Raw, t), repeats{}
		q.entry, q.lastNotMine, q.observed = stored.EntryOf(q.id), q.sent, observation{}
		q.place, q.order = stored.Entry{ID: q.entry}, nil
		q.forecast = pace.Forecast{Learned: q.locker.HoldTimes.Get(q.Core.KeyText(q.Raw))}
	}
	opt := q.repeats.options(&q.locker.Config)
	// A late answer tells for certain that a place is ours, and the answer to a repetition
	// does not: it is worth more patience than what others wait for.
	opt.Timeout = min(2*opt.Timeout, q.locker.span()/3)
	opt.Absence = !q.Stub // else the write of a stub finds out by itself
	opt.OnItem = q.Row
	return q.enqueue, opt
}

// answered draws the conclusion from the answer to an enqueue, and waits in the
// queue until the lock is ours.
func (q *queued) answered(ctx context.Context, res ddb.Result) (*Lock, error) {
	if q.repeats.again(ctx, &q.locker.Config, &res) {
		return nil, nil
	}
	q.enqueue = nil
	res = q.Core.Looked(ctx, q.Raw, q.notEntered, res)
	if res.Outcome == ddb.Applied || res.Outcome == ddb.Condition {
		q.failed = 0 // looks without an answer before it are not in a row with those after it
	}
	switch res.Outcome {
	case ddb.Applied:
		_, ahead, _ := q.Core.ParseQueue(res.Item).Find(q.entry)
		q.Core.Observe.Depth(ctx, q.Kind, len(ahead))
		if l, err := q.Lock(res.Item); err == nil {
			q.order, q.lastStolen = q.Core.Order(res.Item), l.Stolen
		}
		return q.stand(ctx, res.Item)
	case ddb.Condition:
		return q.refused(ctx, res.Image)
	case ddb.Unknown:
		if ddb.Oversize(res.Err) { // the answer to the last attempt; an earlier one had none
			q.leave(ctx)
			return nil, q.waitForRoom(ctx, res.Err)
		}
		freed := q.dequeue(q.cleaning(ctx))
		return nil, q.unlessFreed(freed, q.noAnswer(ctx, "request for its lock", res.Err))
	}
	if ddb.Oversize(res.Err) {
		return nil, q.waitForRoom(ctx, res.Err)
	}
	return nil, res.Err
}

// refused decides what the failed condition of an enqueue means.
func (q *queued) refused(ctx context.Context, image ddb.Item) (*Lock, error) {
	core := q.Core
	l, err := q.Lock(image)
	if err != nil {
		return nil, err
	}
	_, lost := q.mayHold[l.By]
	_, _, there := core.ParseQueue(image).Find(q.entry)
	switch {
	case there, lost, l.By == q.id, stored.EntryOf(l.By) == q.entry:
		return q.stand(ctx, image) // an earlier attempt landed, or another's entry is like ours
	case core.Absent(image) && q.Row:
		return nil, errAgain // it was there when the enqueue was judged
	case core.Absent(image) && q.Stub:
		q.stub = true
		return nil, nil
	case core.Absent(image), !q.Row && !q.Stub && core.Hidden(image):
		return nil, NotFound(q.Key, core.Name)
	}
	if err := core.CheckQueue(image); err != nil {
		return nil, Unfit(core, q.Key, err)
	}
	q.seen = max(q.seen, l.Held, l.Token-1)
	return nil, errNoQueue
}

// stand looks at the item until the lock is ours. image is what the enqueue left.
func (q *queued) stand(ctx context.Context, image ddb.Item) (*Lock, error) {
	asked := q.sent
	q.spacing, q.looks = q.locker.spacing(image), newLooks(ctx, q.Core, image, asked)
	if q.repeats.sent == 1 { // else sleeps are in it
		q.forecast.Took(time.Since(asked))
	}
	for {
		held, l, pause, err := q.evaluate(ctx, image, asked)
		if held != nil {
			q.looks.forget()
			held.looks = q.looks // to end those that are under way would cost their connections
			return held, nil
		}
		if err == nil {
			image, asked, err = q.look(ctx, l, time.Now().Add(pause))
		}
		if err != nil {
			q.looks.end()
			if !errors.Is(err, errAgain) {
				q.dequeue(q.cleaning(ctx))
			}
			return nil, err
		}
	}
}

// evaluate draws the conclusion from what an answer showed, whose request was sent
// after asked: the lock is ours, or how long to wait until the next look.
func (q *queued) evaluate(ctx context.Context, image ddb.Item, asked time.Time) (*Lock, stored.Record, time.Duration, error) {
	for {
		l, err := q.Lock(image)
		if err == nil {
			err = q.missing(image)
		}
		if err != nil {
			return nil, l, 0, err
		}
		if end, ours := q.mine(image, l); ours {
			if l.Handed() {
				q.forecast.Came(asked, time.Now())
				q.learn()
			}
			held, err := q.take(ctx, image, l, end)
			return held, l, 0, err
		}
		me, ahead, err := q.standing(ctx, image, l)
		if err != nil {
			return nil, l, 0, err
		}
		if pause, waits := q.waits(image, l, me, ahead, asked); waits {
			return nil, l, pause, nil
		}
		asked = time.Now()
		res := q.takeOver(ctx, image, l)
		if res.Outcome != ddb.Condition {
			return q.tookOver(ctx, l, asked, res)
		}
		image = res.Image
		q.looks.believe(q.Core, image, asked)
	}
}

// take makes the handle of a lock that an answer showed to be ours.
func (q *queued) take(ctx context.Context, image ddb.Item, l stored.Record, end time.Time) (*Lock, error) {
	if q.outrun(image, l) {
		q.Core.Delete(ctx, q.Core.Drop(q.Raw, l.By, l.Held), ddb.Options{NoGrace: true})
		return nil, errAgain
	}
	return q.keep(ctx, image, l, end)
}

// missing is the error of an item that is no more: one that may be made is asked for
// again.
func (q *queued) missing(image ddb.Item) error {
	switch absent := q.Core.Absent(image); {
	case absent && (q.Stub || q.Row):
		return errAgain
	case absent:
		return NotFound(q.Key, q.Core.Name)
	}
	return nil
}

// standing tells where we stand in the queue, and who stands before us, or why we do
// not stand there.
func (q *queued) standing(ctx context.Context, image ddb.Item, l stored.Record) (me stored.Entry, ahead stored.Queue, err error) {
	core := q.Core
	q.seen, q.lastHeld = max(q.seen, l.Held, l.Token-1), max(q.lastHeld, l.Held)
	me, ahead, there := core.ParseQueue(image).Find(q.entry)
	switch {
	case !there:
		return me, nil, errAgain // we were passed over
	case !q.certain(image, l):
		// The place may be another's: entries are short. If it is ours, and the lock
		// was handed over to it before, that costs a grace.
		q.place = me
		q.leave(ctx)
		return me, nil, errAgain
	case !q.Row && !q.Stub && core.Hidden(image):
		return me, nil, NotFound(q.Key, core.Name)
	}
	return me, ahead.Without(stored.EntryOf(l.By)), nil
}

// waits learns from an answer that shows others before us, or a hold that lasts. It
// tells how long to wait until the next look; false: it is our turn to take over.
func (q *queued) waits(image ddb.Item, l stored.Record, me stored.Entry, ahead stored.Queue, asked time.Time) (pause time.Duration, waits bool) {
	core := q.Core
	if q.OnWait != nil {
		q.OnWait(l)
	}
	now := time.Now()
	if q.observed.observe(image, l, core, q.locker.span(), now) {
		q.firstSeen = q.appearance(l, now)
	}
	q.place, q.lastNotMine = me, asked
	q.order, q.lastStolen = core.Order(image), l.Stolen
	q.forecast.See(len(ahead)+1, asked, now)
	q.learn()
	rest := q.remaining(l, len(ahead), now)
	q.sure = asked.Add(q.locker.grace()) // a hold that we have not seen lasts a grace
	if mine := now.Add(rest); mine.Before(q.sure) {
		q.sure = mine
	}
	return min(time.Until(q.forecast.Next(q.looks.last, q.spacing)), rest+time.Millisecond), rest >= 0
}

// tookOver is what came of a takeover that no image has refused.
func (q *queued) tookOver(ctx context.Context, l stored.Record, asked time.Time, res ddb.Result) (*Lock, stored.Record, time.Duration, error) {
	switch res.Outcome {
	case ddb.Applied:
		l, err := q.Lock(res.Item)
		if err != nil {
			return nil, l, 0, err
		}
		held, err := q.keep(ctx, res.Item, l, asked.Add(q.locker.Lease))
		return held, l, 0, err
	case ddb.Refused:
		if res.Again {
			return nil, l, q.Wait.Min, nil // throttled
		}
		if q.full++; ddb.Oversize(res.Err) && q.full < maxFull { // our name is longer than the one there
			return nil, l, q.Wait.Max, nil
		}
		return nil, l, 0, q.ExplainEnd(ctx, res.Err)
	}
	return nil, l, q.Wait.Min, nil // the next look tells
}
