package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// commitTime is the time that the lease must not have passed. It is taken once
// per commit: all attempts carry the same, so that no late copy of an earlier
// one can succeed where the verdict was "expired".
func (h *Lock) commitTime() time.Time {
	if h.locker.LateCommit {
		return time.Time{}
	}
	return h.locker.Clock().Add(h.ahead)
}

// Commit sends the update that carries a change, which set adds to it, and ends
// the hold. With pass the lock stays with this process: the hold that it
// returns is the next one's. The caller holds op.
func (h *Lock) Commit(ctx context.Context, set func(*protocol.Write), pass bool) (next *Lock, err error) {
	return h.sendEnd(ctx, endOptions{writes: true}, set, pass, h.commitTime())
}

// Delete sends the delete of the item, which ends the hold too. The caller
// holds op.
func (h *Lock) Delete(ctx context.Context) error {
	w := h.locker.Core.NewWrite()
	w.Own(h.id, h.token, h.commitTime())
	in := w.Delete(h.raw())
	if h.inDoubt { // an earlier write may have ended the hold: no evidence
		return h.end(ctx, endOptions{writes: true}, func(ctx context.Context, opt ddb.Options) ddb.Result {
			return h.locker.Core.Delete(ctx, in, opt)
		})
	}
	return h.end(ctx, endOptions{writes: true}, h.remove(in, false))
}

type send func(context.Context, ddb.Options) ddb.Result

func (h *Lock) update(in *dynamodb.UpdateItemInput) send {
	return func(ctx context.Context, opt ddb.Options) ddb.Result { return h.locker.Core.Update(ctx, in, opt) }
}

// byAbsence is the result of a delete that nobody answered with "applied": that
// the item is gone says so.
var byAbsence = ddb.Result{Outcome: ddb.Applied}

// remove deletes the item. If an answer was lost, that the item which was held
// is gone before the deadline is the evidence. strict takes it for evidence
// only then: an item that a first, clean attempt finds gone was removed by
// somebody else.
func (h *Lock) remove(in *dynamodb.DeleteItemInput, strict bool) send {
	clean := true
	return func(ctx context.Context, opt ddb.Options) ddb.Result {
		res := h.locker.Core.Delete(ctx, in, opt)
		clean = clean && res.Clean
		if res.Outcome != ddb.Condition || strict && clean {
			return res
		}
		l, err := h.locker.Core.ParseRecord(res.Image)
		if err == nil && l.JudgeDelete(h.holder(), !h.locker.Core.Absent(res.Image), clean, !h.Expired()) == protocol.Committed {
			return byAbsence
		}
		return res
	}
}

// endOptions says what kind of write ends a hold.
type endOptions struct {
	// writes says that it carries a change: if an earlier one of this hold had
	// no verdict, a hold that is over does not tell which of the two ended it.
	writes  bool
	noGrace bool // nothing is sent once the context is done
}

// end sends the write that ends the hold until it has a verdict, or the
// deadline has passed.
func (h *Lock) end(ctx context.Context, how endOptions, send send) error {
	first := true // no attempt of this very write may have been applied before the last
	res := ddb.UntilDecided(ctx, ddb.Backoff{Min: h.locker.Wait.Min, Max: h.locker.Wait.Max}, !h.inDoubt, h.Expired, func() (ddb.Result, bool) {
		res := send(ctx, ddb.Options{Timeout: h.locker.Lease / 3, NoGrace: how.noGrace, Holding: true, Absence: true})
		first = first && res.Clean
		// Others wait behind the hold: it is not given up for a table that is busy,
		// as long as it has an end.
		return res, h.locker.Lease > 0 && res.Outcome == ddb.Refused && ddb.Throttled(res.Err)
	})
	replaced := how.writes && res.Outcome == ddb.Condition && res.Clean && !h.Expired() && h.replaced(res.Image)
	if replaced {
		// Before the deadline nobody deletes a held item. The network may have
		// delivered ours twice, and the item was deleted in between.
		res.Clean = false
	}
	if !how.writes && h.inDoubt {
		defer h.settleUndecided(res, first)
	}
	if res.Outcome != ddb.Applied {
		err := h.judge(res)
		switch {
		case err == nil && how.writes && h.inDoubt:
			h.Finish(repo.ErrOutcomeUnknown)
			err = UnknownOutcome(h.key, errOneOfTwo)
		case replaced && errors.Is(err, repo.ErrOutcomeUnknown):
			err = UnknownOutcome(h.key, errReplaced)
		}
		if err != nil {
			h.inDoubt = h.inDoubt || how.writes && errors.Is(err, repo.ErrOutcomeUnknown)
			return err
		}
	}
	h.Finish(repo.ErrReleased)
	return nil
}

// Why a write that ends a hold has no verdict, where it is not that an answer was
// lost and others have changed the item since.
var (
	errReplaced = errors.New("the item was deleted or replaced while it was locked, by a writer that does not follow the protocol, unless the network delivered this write twice")
	errOneOfTwo = errors.New("an earlier write under this lock had no answer, and one of the two has ended it")
	errGone     = errors.New("an answer was lost, and the item was deleted or replaced since")
	errOnItsWay = errors.New("an answer was lost, and the lock is still in place: the write may arrive yet")
)

// undecided says why a write that was refused by an image has no verdict.
func (h *Lock) undecided(l protocol.Record, image ddb.Item) error {
	switch {
	case h.locker.Core.Absent(image), l.OtherLife(h.holder()):
		return errGone
	case l.By == h.id && l.Held == h.token:
		return errOnItsWay
	}
	return nil // others have changed it
}

// replaced reports whether an image is not that of the item which was held. The
// caller holds op.
func (h *Lock) replaced(image ddb.Item) bool {
	l, err := h.locker.Core.ParseRecord(image)
	return err == nil && (h.locker.Core.Absent(image) || l.OtherLife(h.holder()))
}

// settleUndecided draws the conclusion from a release about the earlier write in doubt.
// One that was applied found the hold in place, which that write would have
// ended and now never can. One that was refused, in its only attempt, by a hold
// that nobody else has ended found that write's work. The caller holds op.
func (h *Lock) settleUndecided(released ddb.Result, first bool) {
	switch {
	case released.Outcome == ddb.Applied && !released.Sent.IsZero(): // not inferred
		h.outcome.Store(int64(protocol.Lost))
	case released.Outcome == ddb.Condition && first && errors.Is(h.Ended(), repo.ErrReleased):
		h.outcome.Store(int64(protocol.Committed))
	}
}

// OutcomeOfUndecided is what became of a write that had no verdict, if the release after it
// has told: Committed, or Lost.
func (h *Lock) OutcomeOfUndecided() protocol.Verdict { return protocol.Verdict(h.outcome.Load()) }

// ReleaseOptions says how a hold is given back.
type ReleaseOptions struct {
	// Drop deletes the item with its lock.
	Drop bool
	// NoGrace ends with ctx, without a last request after it.
	NoGrace bool
	// KeepLocal keeps the lock for the next one of this process.
	KeepLocal bool
}

// Release gives the lock back without a change. It is harmless on a hold that
// its holder has ended. With KeepLocal it returns the hold of the next one, if the
// lock could be kept.
func (h *Lock) Release(ctx context.Context, how ReleaseOptions) (next *Lock, err error) {
	if !how.NoGrace {
		var cancel context.CancelFunc
		ctx, cancel = ddb.Cleaning(ctx)
		defer cancel()
	}
	if err := h.BeginLast(ctx); err != nil {
		if !how.NoGrace {
			h.Forget(repo.ErrReleased)
		}
		return nil, err
	}
	defer h.Done()
	switch why := h.Ended(); {
	case errors.Is(why, repo.ErrReleased):
		return nil, nil
	case why != nil:
		return nil, h.Usable()
	}
	if ctx.Err() != nil && how.NoGrace {
		return nil, fmt.Errorf("item %v, token %d: %w", h.key, h.token, ddb.CtxError(ctx))
	}
	h.Halt()
	as := endOptions{noGrace: how.NoGrace}
	switch {
	case how.Drop:
		err = h.end(ctx, as, h.remove(h.locker.Core.Drop(h.raw(), h.id, h.token), true))
	case h.stub && len(h.queue) == 0:
		err = h.end(ctx, as, h.remove(h.locker.Core.Unstub(h.raw(), h.id, h.token), false))
	case how.KeepLocal && !h.inDoubt:
		next, err = h.sendEnd(ctx, as, nil, true, time.Time{})
	case h.locker.Fair:
		_, err = h.sendEnd(ctx, as, nil, false, time.Time{})
	default:
		err = h.end(ctx, as, h.update(h.locker.Core.Release(h.raw(), h.id, h.token)))
	}
	if err != nil {
		// Nothing renews the hold any more: it ends with its lease at the latest.
		h.Forget(repo.ErrReleased)
	}
	return next, err
}
