package lock

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// What becomes of a lock that was waited for in the queue: it is kept, confirmed first if it
// was handed over, or given back.

// keep makes the handle of a lock that was waited for, and begins to look after
// it. One that was handed over is confirmed before its grace is over: at once if
// little of it is left, else if the holder is not done soon.
func (q *queued) keep(ctx context.Context, image ddb.Item, l stored.Record, end time.Time) (*Lock, error) {
	if l.Held == 0 {
		return q.hold(ctx, image, q.sent) // says what is wrong
	}
	if q.locker.Lease == 0 {
		return q.keepForGood(ctx, image, l)
	}
	h := q.newLock(image, l, end)
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
func (q *queued) keepForGood(ctx context.Context, image ddb.Item, l stored.Record) (*Lock, error) {
	if l.Handed() {
		var err error
		if image, l, err = q.settle(ctx, l); err != nil {
			return nil, err
		}
	}
	h := q.newLock(image, l, time.Time{})
	h.Start(ctx)
	return h, nil
}

// settle confirms a hold that was handed over, and returns what is stored then. Whether
// the grace was over does not matter: nobody has taken the lock over if it is applied,
// and nobody can afterwards. Without an answer the lock is given back with the place.
func (q *queued) settle(ctx context.Context, handed stored.Record) (ddb.Item, stored.Record, error) {
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

// giveBack ends a lock that nobody will have. If it fails, the lock ends with its lease. What
// was to confirm it (settle), and had no answer, may land meanwhile: then the lock is ended
// under its new id. Once the lock has ended under the old one, that cannot land any more.
func (q *queued) giveBack(ctx context.Context, image ddb.Item, l stored.Record) (freed bool) {
	h := q.newLock(image, l, time.Now())
	_, err := h.End(ctx, End{As: q.unwanted(image), NoGrace: true})
	if now := h.Found(); err != nil && l.By != q.id && now.By == q.id && now.Held == l.Held {
		_, err = q.newLock(image, now, time.Now()).End(ctx, End{As: q.unwanted(image), NoGrace: true})
	}
	return err == nil || errors.Is(err, repo.ErrLockLost)
}

// outrun reports whether a lock that is ours is under a token that is not above those
// of all whom this call has found holding it: the row was deleted while we stood in its
// queue, and a late copy of our enqueue has made it anew, with the token of when that
// was sent.
func (q *queued) outrun(image ddb.Item, l stored.Record) bool {
	return q.locker.deletes(q.Request) && l.Held <= q.lastHeld && q.Core.LockOnly(image)
}

// unwanted is how a lock ends that nobody will have.
func (q *queued) unwanted(image ddb.Item) Ending {
	if q.locker.deletes(q.Request) && q.Core.LockOnly(image) {
		return Drop
	}
	return Release
}

// deletes reports whether what is nothing but its lock goes with it.
func (t *Locker) deletes(how Request) bool { return how.Row && t.Lease == 0 }
