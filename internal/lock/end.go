package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Ending is a way to end a lock.
type Ending int

// The ways to end a lock. Release and Drop are harmless on a lock that its holder
// has ended.
const (
	Release Ending = iota // without a change
	Drop                  // and the item is deleted with its lock, whatever the time, unless others wait in its queue
	Commit                // with a change
	Delete                // the change is that the item is deleted
)

// End says how a lock ends.
type End struct {
	As Ending
	// Change adds the change of a Commit. With an error nothing is sent, and the
	// lock goes on.
	Change func(*protocol.Write) error
	// Trace tells of the change of a Commit what its lock does not; nil: nothing.
	Trace Trace
	// KeepLocal keeps the lock of a Commit or Release for the next one of this
	// process.
	KeepLocal bool
	// NoGrace ends a Release or Drop with ctx, without a last request after it.
	NoGrace bool
}

// Trace is what an image tells of a write by what that leaves beside the lock: Committed; or
// Lost, if it was not applied so far.
type Trace func(image ddb.Item) protocol.Verdict

// writes reports whether the end carries a change: if an earlier one of this lock
// had no verdict, a lock that is over does not tell which of the two ended it.
func (e *End) writes() bool { return e.As >= Commit }

// End ends the lock in one request, which is sent until it has a verdict or the
// deadline has passed. With KeepLocal it returns the next one's lock, if the lock
// could be kept.
func (h *Lock) End(ctx context.Context, how End) (next *Lock, err error) {
	lingers := !how.writes() && !how.NoGrace
	if lingers {
		var cancel context.CancelFunc
		ctx, cancel = ddb.Cleaning(ctx)
		defer cancel()
	}
	if err := h.BeginLast(ctx); err != nil {
		if lingers {
			h.Forget(repo.ErrReleased)
		}
		return nil, err
	}
	defer h.Done()
	defer h.looks.end()
	if over, err := h.isOver(ctx, how); over || err != nil {
		return nil, err
	}
	e := &ending{End: how, lock: h}
	if !how.writes() {
		// Nothing renews the hold any more, also if the client panics: it ends with its lease
		// at the latest. What is over already stays so.
		defer h.Forget(repo.ErrReleased)
		h.Halt()
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	core, opt := h.locker.Core, ddb.Options{Timeout: h.locker.Lease / 3, NoGrace: how.NoGrace, Holding: true, Absence: true, Stands: h.standsIn}
	opt.Hedge = h.locker.hedge(h.learned(how))
	repetition := ddb.Repetition{Pause: ddb.Backoff{Min: h.locker.Wait.Min, Max: h.locker.Wait.Max}, Clean: !h.inDoubt, Late: h.Expired}
	var res ddb.Result
	answered := false
	defer func() {
		if !answered { // the client has panicked: nobody knows
			e.leaveUndecided(ddb.Result{})
		}
	}()
	for again := true; again; {
		if e.remove != nil {
			res = core.Delete(ctx, e.remove, opt)
		} else {
			res = core.Update(ctx, e.update, opt)
		}
		opt.Hedge = ddb.Hedge{} // the network is slow, rather than one request
		again = e.refusedByQueue(&res) || e.sendsAgain(ctx, &repetition, &res)
	}
	answered = true
	if err := e.judge(res); err != nil {
		return nil, err
	}
	return e.passOn(ctx), nil
}

// standsIn reports whether an item shows the lock in place: no write has ended it.
func (h *Lock) standsIn(image ddb.Item) bool {
	l, err := h.locker.Core.ParseRecord(image)
	return err == nil && l.By == h.id && l.Held == h.token
}

// passOn gives a lock that was kept to the next of this process, and tells of one that
// went to another.
func (e *ending) passOn(ctx context.Context) *Lock {
	h := e.lock
	if e.KeepLocal {
		return e.next.adopt(ctx, h.stub && e.As == Release)
	}
	if h.locker.Fair && e.update != nil && len(h.queue) > 0 {
		h.locker.Core.Observe.HandedOn(ctx, h.locker.Kind, telemetry.ToProcess)
	}
	return nil
}

// isOver reports whether there is nothing left to end, or why the lock cannot be ended.
func (h *Lock) isOver(ctx context.Context, how End) (over bool, err error) {
	if !how.writes() && errors.Is(h.Ended(), repo.ErrReleased) {
		return true, nil
	}
	if err := h.Usable(); err != nil {
		return false, err
	}
	if how.NoGrace && ctx.Err() != nil {
		return false, fmt.Errorf("%s, token %d: %w", h.locker.Core.ItemName(h.key), h.token, ddb.CtxError(ctx))
	}
	return false, nil
}

// sendsAgain reports whether the request is sent again.
func (e *ending) sendsAgain(ctx context.Context, repetition *ddb.Repetition, res *ddb.Result) bool {
	if e.remove != nil || e.As == Drop && !e.KeepLocal {
		e.inferFromAbsence(res)
	}
	// Others wait behind the hold: it is not given up for a table that is busy,
	// as long as it has an end.
	return repetition.Again(ctx, res, res.Err != nil && e.lock.locker.Lease > 0 && ddb.Throttled(res.Err))
}

// inferFromAbsence takes it for evidence that a delete was applied, if nobody
// answered it with "applied", that the item which was held is gone before the
// deadline; and that a Drop was which gave the lock to the next in the queue, for
// whoever is the last one there deletes the item. A Drop takes it for evidence only if an answer was lost: an item that
// a first, clean attempt finds gone was removed by somebody else. So does not a
// Delete after a write without a verdict, which may have ended the hold.
func (e *ending) inferFromAbsence(res *ddb.Result) {
	e.clean = e.clean && res.Clean
	h := e.lock
	if res.Outcome != ddb.Condition || e.As == Drop && e.clean || e.As == Delete && h.inDoubt {
		return
	}
	core := h.locker.Core
	l, err := core.ParseRecord(res.Image)
	if err == nil && protocol.JudgeDelete(l, h.holder(), !core.Absent(res.Image), e.clean, !h.Expired()) == protocol.Committed {
		*res = ddb.Result{Outcome: ddb.Applied} // and nothing was sent that says so
	}
}

// judge gives an end its verdict.
func (e *ending) judge(res ddb.Result) error {
	h := e.lock
	if !e.writes() && h.inDoubt {
		defer h.settleUndecided(res)
	}
	if res.Outcome != ddb.Applied {
		if err := e.refusal(res); err != nil {
			return err
		}
		// Else it is gone again, or an earlier end was applied that has left another one.
		e.KeepLocal = e.KeepLocal && h.locker.heldBy(res.Image, e.next.id)
	}
	h.Finish(repo.ErrReleased)
	return nil
}

// refusal is the error of an end that was not answered with success; nil: it was
// applied all the same.
func (e *ending) refusal(res ddb.Result) error {
	h := e.lock
	// If the image does not say how the hold ended, the network may have delivered ours
	// twice, and others came in between.
	var covered error
	if res.Outcome == ddb.Condition && res.Clean && e.possible() {
		covered = h.covered(res.Image)
		res.Clean = covered == nil || !e.writes()
	}
	err := h.judge(res)
	switch {
	case covered != nil && errors.Is(err, repo.ErrLockLost):
		return h.perhaps(covered)
	case err == nil && e.writes() && h.inDoubt:
		h.Finish(repo.ErrOutcomeUnknown)
		err = UnknownOutcome(h.locker.Core.Table, h.key, errOneOfTwo)
	case covered != nil && errors.Is(err, repo.ErrOutcomeUnknown):
		err = UnknownOutcome(h.locker.Core.Table, h.key, covered)
	}
	if errors.Is(err, repo.ErrOutcomeUnknown) && e.leaveUndecided(res) {
		return nil
	}
	return err
}

// possible reports whether the write may have been applied at all: it demands that the
// lease is not over, and all that were ever asked for were before it was made.
func (e *ending) possible() bool { return e.now.IsZero() || e.now.Before(e.lock.Sent()) }

// perhaps is the error of a hold that is over, whoever has ended it: others, or, before
// them, a write whose copy found them.
func (h *Lock) perhaps(why error) error { return fmt.Errorf("%w: %w", h.Lose(), NoVerdict(why)) }

// leaveUndecided notes an end of which the lock does not tell, for those who find out later.
// It reports whether the image tells by itself, of the only write under a hold that is over,
// that it was applied, or had nothing to write. Who is next of this process has no lock then.
func (e *ending) leaveUndecided(res ddb.Result) (applied bool) {
	h := e.lock
	if e.KeepLocal {
		e.next.doubt()
		e.KeepLocal = false
	}
	shown := e.Trace != nil && res.Outcome == ddb.Condition && e.Trace(res.Image) == protocol.Committed
	if applied = shown && !h.inDoubt && !h.standsIn(res.Image); applied || !e.writes() {
		return applied
	}
	h.doubt(e.As == Delete, e.Trace)
	if shown {
		h.outcome.Store(int64(protocol.Committed))
	}
	return false
}

// doubt notes a write that ends the hold and had no verdict. The caller holds op.
func (h *Lock) doubt(deletes bool, trace Trace) {
	h.deleting, h.inDoubt, h.trace = deletes && (h.deleting || !h.inDoubt), true, trace
}

// Why a write that ends a hold has no verdict, where it is not that an answer was
// lost and others have changed the item since.
var (
	errReplaced = errors.New("the item was deleted or replaced while it was locked, by a writer that does not follow the protocol, unless the network delivered this write twice")
	errCovered  = errors.New("a later lock was ended by others: this one was, too, before that, unless the network delivered this write twice")
	errMoved    = errors.New("the lock was ended by others, perhaps behind this write")
	errOneOfTwo = errors.New("an earlier write under this lock had no answer, and one of the two has ended it")
	errGone     = errors.New("an answer was lost, and the item was deleted or replaced since")
	errOnItsWay = errors.New("an answer was lost, and the lock is still in place: the write may arrive yet")
)

// undecided says why a write that was refused by an image has no verdict.
func (h *Lock) undecided(l stored.Record, image ddb.Item) error {
	switch {
	case h.locker.Core.Absent(image), protocol.OtherLife(l, h.holder()):
		return errGone
	case l.By == h.id && l.Held == h.token:
		return errOnItsWay
	}
	return nil // others have changed it
}

// covered is why an image does not tell how the hold ended; nil: it tells. The caller
// holds op.
func (h *Lock) covered(image ddb.Item) error {
	l, err := h.locker.Core.ParseRecord(image)
	switch {
	case err == nil && (h.locker.Core.Absent(image) || protocol.OtherLife(l, h.holder())):
		return errReplaced
	case err == nil && l.Stolen > h.token:
		return errCovered
	}
	return nil
}

// settleUndecided draws the conclusion from a release about the earlier write in doubt.
// One that was applied found the hold in place, which that write would have
// ended and now never can. One that was refused by a hold that nobody else has ended may
// have been refused by that write's work, or by a copy of itself: the write's trace tells.
// Of a delete the image tells, as it would have told the delete itself. The caller holds op.
func (h *Lock) settleUndecided(released ddb.Result) {
	switch {
	case released.Outcome == ddb.Applied && !released.Sent.IsZero(): // not inferred
		h.outcome.Store(int64(protocol.Lost))
	case released.Outcome == ddb.Condition && h.deleting:
		if l, err := h.locker.Core.ParseRecord(released.Image); err == nil {
			h.outcome.Store(int64(protocol.JudgeDelete(l, h.holder(), !h.locker.Core.Absent(released.Image), false, !h.Expired())))
		}
	case released.Outcome == ddb.Condition && h.trace != nil && errors.Is(h.Ended(), repo.ErrReleased):
		h.outcome.Store(int64(h.trace(released.Image)))
	}
}

// OutcomeOfUndecided is what became of a write that had no verdict, if its image,
// or the release after it, has told: Committed, or Lost.
func (h *Lock) OutcomeOfUndecided() protocol.Verdict { return protocol.Verdict(h.outcome.Load()) }

// CommitTime is the time that the lease must not have passed. It is taken once
// per commit: all attempts carry the same, so that no late copy of an earlier
// one can succeed where the verdict was "expired".
func (h *Lock) CommitTime() time.Time {
	if h.locker.LateCommit {
		return time.Time{}
	}
	return h.locker.Clock().Add(time.Duration(h.ahead.Load()))
}
