package lock

import (
	"context"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
)

// mine reports whether the lock is in our hands, and when others may take it
// over, on the own clock.
func (q *queued) mine(l protocol.Record) (end time.Time, ours bool) {
	if sent, landed := q.mayHold[l.By]; landed {
		return sent.Add(q.locker.Lease), true
	}
	switch l.By {
	case q.id:
		// Taken by the enqueue, or later by a request without an answer.
		return q.sent.Add(q.locker.Lease), true
	case protocol.NextID(q.entry):
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

// appearance tells when the hold that this answer was the first to show came
// into being, or was last extended: between the last look that did not show it
// and now. Within that, lockTime tells.
func (q *queued) appearance(l protocol.Record, now time.Time) time.Time {
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
func (q *queued) remaining(l protocol.Record, ahead int, now time.Time) time.Duration {
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

// takeOver takes the lock out of the hands of a dead holder, or a free one, and
// takes away the entries of those ahead, who did not do it when they could. One
// of them that is alive after all finds its entry gone and enqueues again.
func (q *queued) takeOver(ctx context.Context, image ddb.Item, l protocol.Record, ahead protocol.Queue) ddb.Result {
	var gone []string
	for _, w := range ahead {
		gone = append(gone, w.ID)
	}
	queue := q.Core.ParseQueue(image)
	if _, _, there := queue.Find(protocol.EntryOf(l.By)); there {
		gone = append(gone, protocol.EntryOf(l.By))
	}
	now := q.Clock()
	in, err := q.Core.TakeOver(q.Raw, protocol.Acquire{ID: q.id, Now: now, Until: q.locker.until(now), Lease: q.locker.Lease, Watched: image}, q.number, gone)
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

// keep makes the handle of a lock that was waited for, and begins to look after
// it. One that was handed over is confirmed before its grace is over: at once if
// little of it is left, else if the holder is not done soon.
func (q *queued) keep(ctx context.Context, image ddb.Item, l protocol.Record, end time.Time) (*Lock, error) {
	if l.Held == 0 {
		return q.hold(ctx, image, q.sent) // says what is wrong
	}
	if q.locker.Lease == 0 {
		return q.keepForGood(ctx, image, l)
	}
	h := q.newLock(image, l, q.entry, end)
	third := min(q.locker.grace(), l.Lease) / 3
	if h.Left() < third {
		if err := q.confirm(ctx, h); err != nil {
			return nil, err
		}
	} else if l.Handed() {
		h.Claim(time.Now().Add(third), third/4)
	}
	h.Start(ctx)
	return h, nil
}

// confirm makes a hold that was handed over one of a full lease. Nobody knows of
// the hold yet: that its deadline has passed is no reason against it.
func (q *queued) confirm(ctx context.Context, h *Lock) error {
	if err := h.Begin(ctx); err != nil { // nobody knows of it yet: it is free
		return err
	}
	var r repeats
	asked, until := h.NextEnd()
	res, landed := h.sendExtension(ctx, until, r.options(&q.locker.Config))
	for r.again(ctx, &q.locker.Config, &res) {
		asked, until = h.NextEnd()
		res, landed = h.sendExtension(ctx, until, r.options(&q.locker.Config))
	}
	over := !landed && res.Outcome == ddb.Condition
	if over {
		_ = h.lostRenewal(res)
	}
	if landed {
		h.Renewed(asked)
	}
	h.Done()
	switch {
	case landed:
		return nil
	case over:
		return errAgain // it was taken over
	}
	_, _ = h.End(q.cleaning(ctx), End{}) // if it fails, the lock ends with its lease
	return q.ExplainEnd(ctx, q.noAnswer(ctx, "claim of its lock", res.Err))
}

// keepForGood is keep for a lock that nobody may take over from its holder, dead or not.
// One that was handed over ends with its grace, for one to whom it is handed may have
// died since it enqueued: so it is confirmed before anybody has it.
func (q *queued) keepForGood(ctx context.Context, image ddb.Item, l protocol.Record) (*Lock, error) {
	if l.Handed() {
		var err error
		if image, l, err = q.settle(ctx, l); err != nil {
			return nil, err
		}
	}
	h := q.newLock(image, l, q.entry, time.Time{})
	h.Start(ctx)
	return h, nil
}

// settle confirms a hold that was handed over, and returns what is stored then. Whether
// the grace was over does not matter: nobody has taken the lock over if it is applied,
// and nobody can afterwards. Without an answer the lock is given back with the place.
func (q *queued) settle(ctx context.Context, handed protocol.Record) (ddb.Item, protocol.Record, error) {
	in := q.Core.Settle(q.Raw, handed.By, q.id, handed.Held)
	var r repeats
	res := q.Core.Update(ctx, in, r.options(&q.locker.Config))
	for r.again(ctx, &q.locker.Config, &res) {
		res = q.Core.Update(ctx, in, r.options(&q.locker.Config))
	}
	stored := res.Item
	if res.Outcome == ddb.Condition {
		stored = res.Image
	}
	l, err := q.Core.ParseRecord(stored)
	switch {
	case err == nil && l.By == q.id && l.Held == handed.Held:
		return stored, l, nil // by this attempt or an earlier one
	case res.Outcome == ddb.Condition:
		return nil, l, errAgain // it was taken over
	}
	return nil, l, q.ExplainEnd(ctx, q.noAnswer(ctx, "claim of its lock", res.Err))
}
