package lock

import (
	"context"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/stored"
)

// mine reports whether the lock is in our hands, and when others may take it
// over, on the own clock.
func (q *queued) mine(image ddb.Item, l stored.Record) (end time.Time, ours bool) {
	if sent, landed := q.mayHold[l.By]; landed {
		return sent.Add(q.locker.Lease), true
	}
	switch l.By {
	case q.id:
		// Taken by the enqueue, or later by a request without an answer.
		return q.sent.Add(q.locker.Lease), true
	case stored.NextID(q.entry):
		if !q.certain(image, l) {
			return end, false
		}
		// Others count the grace from when they first saw the hold, and it came
		// into being after the last look that did not show it was sent.
		end = q.lastNotMine.Add(l.Lease) // the grace, as whoever transferred it has set it
		if !q.locker.Clockless {
			// The write may have been on its way for long, and lockTime says when it
			// was made.
			if byClock := time.Now().Add(l.Until.Sub(q.Clock())); byClock.Before(end) {
				end = byClock
			}
		}
		return end, true
	}
	return end, false
}

// certain reports whether what an image shows under our entry, which is short, is ours. It
// is if nobody has taken us out of the queue since we have seen ourselves there: that
// would have moved lockStolen, and it takes somebody behind us who had to wait longer
// than we. Where it has moved and we may have missed our turn to take over, others who
// stood beside us and still do are the proof. Who has none counts itself as passed over.
func (q *queued) certain(image ddb.Item, l stored.Record) bool {
	return q.order != nil && (l.Stolen == q.lastStolen || time.Now().Before(q.sure) || protocol.Follows(q.entry, q.order, q.Core.Order(image)))
}

// appearance tells when the hold that this answer was the first to show came
// into being, or was last extended: between the last look that did not show it
// and now. Within that, lockTime tells.
func (q *queued) appearance(l stored.Record, now time.Time) time.Time {
	if !l.Timed {
		return now
	}
	made := l.Until.Add(-l.Lease)
	if l.Handed() {
		made = made.Add(-2 * q.Skew) // the allowance of whoever handed it over
	}
	at := now.Add(made.Sub(q.Clock()))
	switch {
	case at.Before(q.lastNotMine):
		return q.lastNotMine
	case at.After(now):
		return now
	}
	return at
}

// remaining is how long the hold remains beyond the reach of one who waits for it
// behind so many others, on the evidence so far; below zero: it may take the
// lock. A free lock is from when it was seen to be.
//
// The first in the queue may as soon as the hold is dead. Each one behind waits a
// step longer, and, where it has watched the hold, as much as others may have
// seen it later: so those who look in time take over in their order, and those
// of them who do not are as dead as the holder.
func (q *queued) remaining(l stored.Record, ahead int, now time.Time) time.Duration {
	from := q.observed.since
	if late := q.firstSeen.Add(q.locker.glance()); ahead > 0 && late.After(from) {
		from = late
	}
	steps := time.Duration(ahead) * q.locker.step()
	if !l.Timed {
		return from.Sub(now) - 1 + steps
	}
	rest := time.Duration(1<<63 - 1 - int64(2*settings.MaxLease))
	if !l.Endless() && (q.locker.Clockless || !l.ByHand()) {
		// It stood unchanged for its lease, whatever any clock says. A lock by hand
		// names no lease: what stands there is its predecessor's.
		rest = from.Add(q.observed.lease).Sub(now)
	}
	if !q.locker.Clockless {
		rest = min(rest, l.Until.Add(q.Skew).Sub(q.Clock()))
	}
	return rest + steps
}

// takeOver takes the lock out of the hands of a dead holder, or a free one. Of those
// ahead of us in the queue who did not do it when they could, one that is alive after all
// finds its entry gone and enqueues again.
func (q *queued) takeOver(ctx context.Context, image ddb.Item, l stored.Record) ddb.Result {
	now := q.Clock()
	in, err := q.Core.TakeOver(q.Raw, protocol.Acquire{ID: q.id, Now: now, Until: q.locker.until(now), Lease: q.locker.Lease, Watched: image}, q.place)
	if err != nil {
		return ddb.Result{Outcome: ddb.Refused, Err: err}
	}
	// Without an answer the next look tells.
	res := q.Core.Update(ctx, in, ddb.Options{Timeout: q.locker.grace(), AwaitAnswer: true, Single: true})
	if res.Outcome == ddb.Applied && l.Busy() {
		q.Core.Observe.TakenOver(ctx, q.Kind, 1, slog.String("key", q.Key.String()), slog.String("from", l.Owner()), slog.Int64("lost", l.Held))
	}
	return res
}
