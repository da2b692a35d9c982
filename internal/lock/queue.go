package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/repo"
)

// queued is an acquisition that waits in the queue on the item (see
// lockedread's doc.go, "Fair").
type queued struct {
	*acquiring
	entry  string
	number int64
	drawn  time.Time // before the enqueue was sent
	// lastNotMine is before the last request was sent whose answer did not show the
	// lock in our hands: it was transferred later than that.
	lastNotMine time.Time
	// firstSeen is when the hold that is watched came into being, or was last
	// extended, as far as that can be told: those who saw it later than this one
	// did count from no later than a look after it.
	firstSeen time.Time
	pace      pace.Pace
	failed    int // looks without an answer, in a row
	full      int // enqueues that found no room, and then nobody on the item, in a row
	// fromOutside is what was seen of the hold while there was no room for an entry.
	fromOutside observation
}

// HoldTimes remembers how long a turn took lately on items that many wanted.
type HoldTimes = recent.Memory[time.Duration]

// holdTimesKept bounds how many items are remembered.
const holdTimesKept = 1024

// NewHoldTimes makes a memory of turns.
func NewHoldTimes() *HoldTimes { return recent.New[time.Duration](holdTimesKept) }

// errNoQueue says that the lock is not one that a queue can form behind: it was
// taken by hand, or never ends, or there is no room.
var errNoQueue = errors.New("no queue behind this lock")

// waitsInQueue reports whether the acquisition waits in the queue.
func (a *acquiring) waitsInQueue() bool {
	return a.locker.Fair && !a.Try && !a.Row && a.locker.Lease > 0
}

// run enqueues, and waits until the lock is ours.
func (q *queued) run(ctx context.Context) (*Lock, error) {
	for {
		held, err := q.enqueue(ctx)
		if !errors.Is(err, errAgain) {
			return held, err
		}
		ddb.Sleep(ctx, q.resend.Next(time.Now(), time.Time{}))
	}
}

// enqueue enters the queue, or takes the lock if it is free. The request may be
// repeated: its entry tells whether it has landed.
func (q *queued) enqueue(ctx context.Context) (*Lock, error) {
	q.drawn = time.Now() // before the end is reckoned
	now := q.Clock()
	q.id = protocol.NewID(q.locker.Owner)
	q.entry, q.lastNotMine, q.observed = protocol.EntryOf(q.id), q.drawn, observation{}
	q.pace = pace.Pace{Turn: q.locker.HoldTimes.Get(q.Core.KeyText(q.Raw))}
	core := q.Core
	in := core.Enqueue(q.Raw, protocol.Acquire{ID: q.id, Now: now, Until: q.locker.until(now), Lease: q.locker.Lease, Hidden: q.Stub})
	res := q.locker.sendUntilAnswered(ctx, func(opt ddb.Options) ddb.Result {
		opt.Absence = !q.Stub // else the write of a stub finds out by itself
		return core.Update(ctx, in, opt)
	})
	switch res.Outcome {
	case ddb.Applied:
		return q.wait(ctx, res.Item)
	case ddb.Condition:
		return q.enqueueRefused(ctx, res.Image)
	case ddb.Unknown:
		if protocol.Oversize(res.Err) { // the answer to the last attempt; an earlier one had none
			giving, cancel := ddb.DetachedTimeout(ctx)
			q.dequeueOn(giving)
			cancel()
			return nil, q.waitForRoom(ctx, res.Err)
		}
		q.dequeue(ctx)
		return nil, repo.Classify(fmt.Errorf("item %v: no answer to the request for its lock: %w", q.Key, res.Err))
	}
	if protocol.Oversize(res.Err) {
		return nil, q.waitForRoom(ctx, res.Err)
	}
	return nil, repo.Classify(res.Err)
}

// waitForRoom waits where the item has no room for one more entry: those who stand
// in the queue make room.
func (q *queued) waitForRoom(ctx context.Context, full error) error {
	image, err := q.poll(ctx)
	if err != nil {
		return err
	}
	if image == nil {
		return errAgain
	}
	l, err := q.Lock(image)
	if err != nil {
		return err
	}
	queue := q.Core.ParseQueue(image)
	if l.Busy() || len(queue) > 0 {
		now := time.Now()
		q.fromOutside.observe(image, l, q.Core, q.locker.Lease, now)
		q.observed, q.firstSeen = q.fromOutside, q.fromOutside.since
		if q.remaining(l, len(queue), now) < 0 {
			return errNoQueue // they are all dead, and make no room: the lock alone will do
		}
		q.full = 0
		if err := q.WaitToPoll(ctx, l, q.Wait.Max); err != nil {
			return err
		}
		return errAgain
	}
	if q.full++; q.full >= maxFull {
		return repo.Classify(full) // there is no room for the lock itself
	}
	return errAgain // others may have come and gone since
}

// maxFull is how often an enqueue may find no room while nobody is there.
const maxFull = 10

// enqueueRefused decides what the failed condition of an enqueue means.
func (q *queued) enqueueRefused(ctx context.Context, image ddb.Item) (*Lock, error) {
	core := q.Core
	l, err := q.Lock(image)
	if err != nil {
		return nil, err
	}
	_, lost := q.mayHold[l.By]
	_, _, there := core.ParseQueue(image).Find(q.entry)
	switch {
	case there, lost, l.By == q.id, l.By == protocol.NextID(q.entry):
		return q.wait(ctx, image) // an earlier attempt landed
	case core.Absent(image) && q.Stub:
		held, _, err := q.try(ctx, true)
		if held == nil && err == nil {
			err = errAgain // the item came into being meanwhile
		}
		return held, err
	case core.Absent(image), !q.Stub && core.Hidden(image):
		return nil, NotFound(q.Key, core.Name)
	}
	return nil, errNoQueue
}

// wait looks at the item until the lock is ours. image is what the enqueue left.
func (q *queued) wait(ctx context.Context, image ddb.Item) (*Lock, error) {
	asked := q.drawn
	for {
		held, l, pause, err := q.evaluate(ctx, image, asked)
		if held != nil || errors.Is(err, errAgain) {
			return held, err
		}
		for image = nil; err == nil && image == nil; {
			if err = q.WaitToPoll(ctx, l, pause); err != nil {
				break
			}
			asked = time.Now()
			image, err = q.poll(ctx)
			pause = min(q.Wait.Max, q.locker.glance()/2) - time.Since(asked) // after a look without an answer
		}
		if err != nil {
			q.dequeue(ctx)
			return nil, err
		}
	}
}

// evaluate draws the conclusion from what an answer showed, whose request was sent
// after asked: the lock is ours, or how long to wait until the next look.
func (q *queued) evaluate(ctx context.Context, image ddb.Item, asked time.Time) (*Lock, protocol.Record, time.Duration, error) {
	core := q.Core
	for {
		l, err := q.Lock(image)
		switch {
		case err != nil:
			return nil, l, 0, err
		case core.Absent(image) && q.Stub:
			return nil, l, 0, errAgain
		case core.Absent(image):
			return nil, l, 0, NotFound(q.Key, core.Name)
		}
		if end, ours := q.mine(l); ours {
			held, err := q.take(ctx, image, l, end)
			return held, l, 0, err
		}
		me, ahead, there := core.ParseQueue(image).Without(protocol.EntryOf(l.By)).Find(q.entry)
		switch {
		case !there:
			return nil, l, 0, errAgain // we were passed over
		case !q.Stub && core.Hidden(image):
			return nil, l, 0, NotFound(q.Key, core.Name)
		}
		if q.OnWait != nil {
			q.OnWait(l)
		}
		now := time.Now()
		if q.observed.observe(image, l, core, q.locker.Lease, now) {
			q.firstSeen = q.appearance(l, now)
		}
		q.number, q.lastNotMine = me.Ticket, asked
		q.pace.See(len(ahead)+1, now)
		q.locker.HoldTimes.Change(core.KeyText(q.Raw), func(time.Duration) (time.Duration, bool) { return q.pace.Turn, q.pace.Turn > 0 })
		if rest := q.remaining(l, len(ahead), now); rest >= 0 {
			return nil, l, min(q.pace.Delay(len(ahead)+1, now, q.pacing()), rest+time.Millisecond), nil
		}
		asked = time.Now()
		res := q.takeOver(ctx, image, l, ahead)
		switch res.Outcome {
		case ddb.Applied:
			if l, err = q.Lock(res.Item); err != nil {
				return nil, l, 0, err
			}
			held, err := q.take(ctx, res.Item, l, asked.Add(q.locker.Lease))
			return held, l, 0, err
		case ddb.Condition:
			image = res.Image
		case ddb.Refused:
			if res.Again {
				return nil, l, q.Wait.Min, nil // throttled
			}
			if q.full++; protocol.Oversize(res.Err) && q.full < maxFull { // our name is longer than the one there
				return nil, l, q.Wait.Max, nil
			}
			return nil, l, 0, q.ExplainEnd(ctx, repo.Classify(res.Err))
		default:
			return nil, l, q.Wait.Min, nil // the next look tells
		}
	}
}

// pacing: who is next looks nearly without pause, the others sleep for three
// quarters of the time until they are next, and everybody looks often enough to
// notice in time that it was handed the lock.
func (q *queued) pacing() pace.Line {
	limit := q.locker.glance()
	return pace.Line{Near: 1, Max: limit, Limit: limit, Quarters: 3}
}

// dequeue takes the entry away and gives back what was handed to us meanwhile: the
// caller is told that it does not have the lock.
func (q *queued) dequeue(ctx context.Context) { q.dequeueOn(q.cleaning(ctx)) }

// dequeueOn is leave on a context for giving back.
func (q *queued) dequeueOn(ctx context.Context) {
	core := q.Core
	res := core.Update(ctx, core.Dequeue(q.Raw, q.id), ddb.Options{NoGrace: true, Holding: true})
	if res.Outcome != ddb.Condition {
		return // without an answer: who is passed over costs the others a grace
	}
	l, err := core.ParseRecord(res.Image)
	if err != nil {
		q.locker.releaseID(ctx, q.Raw, q.id) // it may be ours: nobody can use it
		return
	}
	if _, ours := q.mine(l); !ours {
		return
	}
	h := q.newLock(res.Image, l, time.Now())
	_, _ = h.Release(ctx, ReleaseOptions{NoGrace: true}) // if it fails, the lock ends with its lease
}
