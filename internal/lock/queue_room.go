package lock

import (
	"context"
	"time"
)

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
		q.fromOutside.observe(image, l, q.Core, q.locker.span(), now)
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
		return full // there is no room for the lock itself
	}
	return errAgain // others may have come and gone since
}

// maxFull is how often an enqueue may find no room while nobody is there.
const maxFull = 10
