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

// queuing is an acquisition that waits in the queue on the item (see
// lockedread's doc.go, "Fair").
type queuing struct {
	*acquisition
	entry  string
	ticket int64
	drawn  time.Time // before the draw was sent
	// unseen is before the last request was sent whose answer did not show the
	// lock in our hands: it was handed over later than that.
	unseen time.Time
	// appeared is when the hold that is watched came into being, or was last
	// extended, as far as that can be told: those who saw it later than this one
	// did count from no later than a look after it.
	appeared time.Time
	pace     pace.Pace
	failed   int // looks without an answer, in a row
	full     int // draws that found no room, and then nobody on the item, in a row
	// outside is what was seen of the hold while there was no room to draw.
	outside watch
}

// HoldTimes remembers how long a turn took lately on items that many wanted.
type HoldTimes = recent.Memory[time.Duration]

// turnsKept bounds how many items are remembered.
const turnsKept = 1024

// NewHoldTimes makes a memory of turns.
func NewHoldTimes() *HoldTimes { return recent.New[time.Duration](turnsKept) }

// errByHand says that the lock is not one that a queue can form behind: it was
// taken by hand, or never ends, or there is no room.
var errByHand = errors.New("no queue behind this lock")

// fairly reports whether the acquisition waits in the queue.
func (a *acquisition) fairly() bool { return a.taker.Fair && !a.Once && !a.Row && a.taker.Lease > 0 }

// run draws a number and waits for its turn.
func (q *queuing) run(ctx context.Context) (*Lock, error) {
	for {
		held, err := q.draw(ctx)
		if !errors.Is(err, errAgain) {
			return held, err
		}
		ddb.Pause(ctx, q.resend.Next(time.Now(), time.Time{}))
	}
}

// draw enters the queue, or takes the lock if it is free. The request may be
// repeated: its entry tells whether it has landed.
func (q *queuing) draw(ctx context.Context) (*Lock, error) {
	q.drawn = time.Now() // before the end is reckoned
	now := q.Clock()
	q.id = protocol.NewID(q.taker.Owner)
	q.entry, q.unseen, q.watch = protocol.EntryOf(q.id), q.drawn, watch{}
	q.pace = pace.Pace{Turn: q.taker.Turns.Get(q.Core.KeyText(q.Raw))}
	core := q.Core
	in := core.Draw(q.Raw, protocol.Taking{ID: q.id, Now: now, Until: q.taker.until(now), Lease: q.taker.Lease, Hidden: q.Stub})
	res := q.taker.inHaste(ctx, func(opt ddb.Options) ddb.Result {
		opt.Absence = !q.Stub // else the write of a stub finds out by itself
		return core.Update(ctx, in, opt)
	})
	switch res.Outcome {
	case ddb.Applied:
		return q.wait(ctx, res.Item)
	case ddb.Condition:
		return q.undrawn(ctx, res.Image)
	case ddb.Unknown:
		if protocol.Oversize(res.Err) { // the answer to the last attempt; an earlier one had none
			giving, cancel := ddb.Detached(ctx)
			q.leaveOn(giving)
			cancel()
			return nil, q.crowded(ctx, res.Err)
		}
		q.leave(ctx)
		return nil, repo.Classify(fmt.Errorf("item %v: no answer to the request for its lock: %w", q.Key, res.Err))
	}
	if protocol.Oversize(res.Err) {
		return nil, q.crowded(ctx, res.Err)
	}
	return nil, repo.Classify(res.Err)
}

// crowded waits where the item has no room for one more entry: those who stand
// in the queue make room.
func (q *queuing) crowded(ctx context.Context, full error) error {
	image, err := q.look(ctx)
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
		q.outside.see(image, l, q.Core, q.taker.Lease, now)
		q.watch, q.appeared = q.outside, q.outside.since
		if q.rest(l, len(queue), now) < 0 {
			return errByHand // they are all dead, and make no room: the lock alone will do
		}
		q.full = 0
		if err := q.Look(ctx, l, q.Wait.Max); err != nil {
			return err
		}
		return errAgain
	}
	if q.full++; q.full >= maxFull {
		return repo.Classify(full) // there is no room for the lock itself
	}
	return errAgain // others may have come and gone since
}

// maxFull is how often a draw may find no room while nobody is there.
const maxFull = 10

// undrawn decides what the failed condition of a draw means.
func (q *queuing) undrawn(ctx context.Context, image ddb.Item) (*Lock, error) {
	core := q.Core
	l, err := q.Lock(image)
	if err != nil {
		return nil, err
	}
	_, lost := q.lost[l.By]
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
	return nil, errByHand
}

// wait looks at the item until the lock is ours. image is what the draw left.
func (q *queuing) wait(ctx context.Context, image ddb.Item) (*Lock, error) {
	asked := q.drawn
	for {
		held, l, pause, err := q.use(ctx, image, asked)
		if held != nil || errors.Is(err, errAgain) {
			return held, err
		}
		for image = nil; err == nil && image == nil; {
			if err = q.Look(ctx, l, pause); err != nil {
				break
			}
			asked = time.Now()
			image, err = q.look(ctx)
			pause = min(q.Wait.Max, q.taker.glance()/2) - time.Since(asked) // after a look without an answer
		}
		if err != nil {
			q.leave(ctx)
			return nil, err
		}
	}
}

// use draws the conclusion from what an answer showed, whose request was sent
// after asked: the lock is ours, or how long to wait until the next look.
func (q *queuing) use(ctx context.Context, image ddb.Item, asked time.Time) (*Lock, protocol.Record, time.Duration, error) {
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
		if end, ours := q.ours(l); ours {
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
		if q.Waiting != nil {
			q.Waiting(l)
		}
		now := time.Now()
		if q.watch.see(image, l, core, q.taker.Lease, now) {
			q.appeared = q.appearance(l, now)
		}
		q.ticket, q.unseen = me.Ticket, asked
		q.pace.See(len(ahead)+1, now)
		q.taker.Turns.Change(core.KeyText(q.Raw), func(time.Duration) (time.Duration, bool) { return q.pace.Turn, q.pace.Turn > 0 })
		if rest := q.rest(l, len(ahead), now); rest >= 0 {
			return nil, l, min(q.pace.Delay(len(ahead)+1, now, q.pacing()), rest+time.Millisecond), nil
		}
		asked = time.Now()
		res := q.overtake(ctx, image, l, ahead)
		switch res.Outcome {
		case ddb.Applied:
			if l, err = q.Lock(res.Item); err != nil {
				return nil, l, 0, err
			}
			held, err := q.take(ctx, res.Item, l, asked.Add(q.taker.Lease))
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
			return nil, l, 0, q.Ended(ctx, repo.Classify(res.Err))
		default:
			return nil, l, q.Wait.Min, nil // the next look tells
		}
	}
}

// pacing: who is next looks nearly without pause, the others sleep for three
// quarters of the time until they are next, and everybody looks often enough to
// notice in time that it was handed the lock.
func (q *queuing) pacing() pace.Line {
	limit := q.taker.glance()
	return pace.Line{Near: 1, Max: limit, Limit: limit, Quarters: 3}
}

// leave takes the entry away and gives back what was handed to us meanwhile: the
// caller is told that it does not have the lock.
func (q *queuing) leave(ctx context.Context) { q.leaveOn(q.cleaning(ctx)) }

// leaveOn is leave on a context for giving back.
func (q *queuing) leaveOn(ctx context.Context) {
	core := q.Core
	res := core.Update(ctx, core.Leave(q.Raw, q.id), ddb.Options{NoSettle: true, Holding: true})
	if res.Outcome != ddb.Condition {
		return // without an answer: who is passed over costs the others a grace
	}
	l, err := core.ParseRecord(res.Image)
	if err != nil {
		q.taker.free(ctx, q.Raw, q.id) // it may be ours: nobody can use it
		return
	}
	if _, ours := q.ours(l); !ours {
		return
	}
	h := q.handle(res.Image, l, time.Now())
	_, _ = h.Release(ctx, Releasing{Strict: true}) // if it fails, the lock ends with its lease
}
