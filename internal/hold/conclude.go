package hold

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// CommitTime is the time that the lease must not have passed. It is taken once
// per commit: all attempts carry the same, so that no late copy of an earlier
// one can succeed where the verdict was "expired".
func (h *Hold) CommitTime() time.Time {
	if h.t.LateCommit {
		return time.Time{}
	}
	return h.t.Clock()
}

// Commit sends the update that carries a change and ends the hold. The caller
// holds op.
func (h *Hold) Commit(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	return h.conclude(ctx, true, h.update(in))
}

// Delete sends the delete of the item, which ends the hold too. The caller
// holds op.
func (h *Hold) Delete(ctx context.Context, in *dynamodb.DeleteItemInput) error {
	return h.conclude(ctx, true, h.remove(in, h.doubt))
}

type send func(context.Context, ddb.Options) ddb.Result

func (h *Hold) update(in *dynamodb.UpdateItemInput) send {
	return func(ctx context.Context, opt ddb.Options) ddb.Result { return h.t.Core.Update(ctx, in, opt) }
}

// remove deletes the item. If an answer was lost, that the item which was held
// is gone before the deadline is the evidence; doubt says that an earlier write
// may have done it.
func (h *Hold) remove(in *dynamodb.DeleteItemInput, doubt bool) send {
	return func(ctx context.Context, opt ddb.Options) ddb.Result {
		res := h.t.Core.Delete(ctx, in, opt)
		if doubt || res.Outcome != ddb.Condition {
			return res
		}
		l, err := h.t.Core.ParseLock(res.Image)
		if err == nil && l.Remove(h.id, h.token, !h.t.Core.Absent(res.Image), res.Clean, !h.Expired()) == ddb.Committed {
			return ddb.Result{Outcome: ddb.Applied}
		}
		return res
	}
}

// conclude sends the write that ends the hold, again and again while it has no
// verdict and the deadline allows: repeating is harmless, since the hold can
// end only once.
//
// writes says that the write carries a change: if an earlier one of this hold
// had no verdict, a hold that is over does not tell which of the two ended it.
func (h *Hold) conclude(ctx context.Context, writes bool, send send) error {
	backoff := ddb.Backoff{Min: h.t.Wait.Min, Max: h.t.Wait.Max}
	clean := !h.doubt
	for {
		res := send(ctx, ddb.Options{Timeout: h.t.Lease / 3})
		clean = clean && res.Clean
		res.Clean = clean
		if res.Outcome == ddb.Unknown && ctx.Err() == nil && !h.Expired() {
			ddb.Pause(ctx, backoff.Next(time.Now(), 0, time.Time{}))
			continue
		}
		if res.Outcome == ddb.Refused && !clean {
			res.Outcome = ddb.Unknown
		}
		if res.Outcome != ddb.Applied {
			err := h.judge(res)
			if err == nil && writes && h.doubt {
				h.Finish(repo.ErrOutcomeUnknown)
				err = guard.UnknownOutcome(h.key, nil)
			}
			if err != nil {
				h.doubt = h.doubt || writes && errors.Is(err, repo.ErrOutcomeUnknown)
				return err
			}
		}
		h.Finish(repo.ErrReleased)
		return nil
	}
}

// Release gives the lock back without a change; drop deletes the item with it.
// It is harmless on a hold that its holder has ended.
func (h *Hold) Release(ctx context.Context, drop bool) error {
	h.Take()
	defer h.Leave()
	switch why := h.Ended(); {
	case errors.Is(why, repo.ErrReleased):
		return nil
	case why != nil:
		return h.Usable()
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = detached(ctx)
		defer cancel()
	}
	h.Halt()
	send := h.update(h.t.Core.Release(h.raw, h.id, h.token))
	switch {
	case drop:
		send = h.remove(h.t.Core.Drop(h.raw, h.id, h.token), h.doubt)
	case h.item[h.t.Core.Attr.LockStub] != nil:
		send = h.remove(h.t.Core.Unstub(h.raw, h.id, h.token), false)
	}
	err := h.conclude(ctx, false, send)
	if err != nil {
		// Nothing renews the hold any more: it ends with its lease at the latest.
		h.Forget(repo.ErrReleased)
	}
	return err
}
