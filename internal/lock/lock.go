package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Lock is a lock on an item. It is safe for concurrent use.
type Lock struct {
	*lease.Lease
	locker    *Locker
	key       repo.Key
	packed    ddb.Key   // the primary key, encoded
	stub      bool      // the item is nothing but a lock that readers do not see
	ttl       time.Time // guarded by op: when TTL removes an item that readers do not see; zero: never
	id        string
	token     int64
	contended atomic.Bool // others wait in the queue behind a fair hold; changed under op

	inDoubt  bool  // guarded by op: an earlier write that ends the hold had no verdict
	unnoted  bool  // guarded by op: whether the last note is there nobody knows
	deleting bool  // guarded by op: and all such were deletes of the item
	trace    Trace // guarded by op: what the last such leaves

	// Changed under op, and asked for without: nobody who asks waits for a request.
	outcome atomic.Int64                  // the ddb.Verdict of a write in doubt, as far as a release has told
	found   atomic.Pointer[stored.Record] // what stood in our place when the hold was found lost
	orphan  atomic.Pointer[Orphan]        // what a write without a verdict may have left
	ahead   atomic.Int64                  // how far lockTime is ahead of the own clock's end, in nanoseconds

	// Of a fair hold.
	own       *stored.Entry // guarded by op: own entry in the queue; nil: there is none
	queue     stored.Queue  // guarded by op: who else waits, as the last image showed
	standing  bool          // guarded by op: that image showed the attribute of the queue
	lastToken int64         // guarded by op: lockToken, as last seen
	looks     *looks        // that are still under way; nil: none was sent
}

// keep begins to look after the hold, which others may take over at end; until is
// its lockTime.
func (h *Lock) keep(ctx context.Context, end, until time.Time) {
	h.Lease = lease.New(&h.locker.lease, h, end, until)
	h.Start(ctx)
}

// Key is the item's key.
func (h *Lock) Key() repo.Key { return h.key }

// raw is the item's key, encoded.
func (h *Lock) raw() ddb.Item { return h.locker.Core.Unpack(h.packed) }

// ID is the identity of the hold.
func (h *Lock) ID() string { return h.id }

// Token is the fencing token of the hold.
func (h *Lock) Token() int64 { return h.token }

// Over reports whether the hold has ended, or is known to be lost.
func (h *Lock) Over() bool { return h.Ended() != nil }

// Locked is the error of those who wait for this hold.
func (h *Lock) Locked() error {
	return &repo.LockedError{Table: h.locker.Core.Name, Key: h.key, Owner: h.locker.Owner, Until: h.Until(), Token: h.token}
}

// Found is what stood in the hold's place when it was found lost.
func (h *Lock) Found() stored.Record {
	if l := h.found.Load(); l != nil {
		return *l
	}
	return stored.Record{}
}

// Begin waits for a request for the hold under way, as long as ctx lasts.
func (h *Lock) Begin(ctx context.Context) error { return h.begun(h.Lease.Begin(ctx)) }

// BeginLast is Begin for the request that ends the hold: an extension gives way.
func (h *Lock) BeginLast(ctx context.Context) error { return h.begun(h.Lease.BeginLast(ctx)) }

func (h *Lock) begun(err error) error {
	if err == nil {
		return nil
	}
	return h.Describe(fmt.Errorf("nothing was sent: %w", err))
}

// Usable returns why the hold cannot be used any more. The caller holds op.
func (h *Lock) Usable() error {
	if why := h.Ended(); why != nil {
		return h.Describe(why)
	}
	return nil
}

// Describe says of an error which hold it is about.
func (h *Lock) Describe(err error) error {
	return fmt.Errorf("%s, token %d: %w", h.locker.Core.ItemName(h.key), h.token, err)
}

// Name is what the log says of the hold.
func (h *Lock) Name() (kind string, which []slog.Attr) {
	return "lock", []slog.Attr{slog.String("key", h.key.String()), slog.Int64("token", h.token)}
}

// Renew moves the end of the hold. The caller holds op.
func (h *Lock) Renew(ctx context.Context, until time.Time) error {
	res, landed := h.sendExtension(ctx, until, ddb.Options{NoGrace: true, Holding: true, Absence: true})
	switch {
	case landed:
		return nil
	case res.Outcome == ddb.Condition:
		return h.lostRenewal(res)
	}
	return h.judge(res)
}

// ExtendWhile keeps the lock from ending with its lease as long as waiting lasts: its
// owner waits for another one meanwhile.
func (h *Lock) ExtendWhile(ctx, waiting context.Context) {
	look := h.locker.Lease / 8
	if h.locker.Core.Jumps {
		look = min(look, ddb.ClockLook)
	}
	for look > 0 && !h.Over() {
		ddb.Sleep(waiting, look)
		if waiting.Err() != nil {
			return
		}
		if h.Left() < h.locker.Lease/2 {
			_ = h.Extend(ctx) // if it fails, the lock ends, which its context tells
		}
	}
}

// sendExtension sends the request, whether or not the deadline has passed: it is
// applied only if nobody has taken the lock over. The caller holds op.
func (h *Lock) sendExtension(ctx context.Context, until time.Time, opt ddb.Options) (_ ddb.Result, landed bool) {
	ahead := until.Sub(h.locker.until(h.locker.Clock()))
	in := h.locker.Core.Extend(h.raw(), h.id, h.token, until)
	if h.locker.Fair && h.locker.Lease > 0 {
		in = h.locker.Core.Confirm(h.raw(), h.id, h.token, until, h.locker.Lease)
	}
	ttl := h.ttl
	if h.fades(until) {
		ttl = h.locker.forgotten(until)
		h.locker.Core.Outlive(in, ttl)
	}
	if opt.Timeout == 0 {
		opt.Timeout = h.locker.Lease / 3
	}
	// No greater lockTime was ever sent: if it is in place, this one landed.
	arrived := func(image ddb.Item) bool {
		return ddb.Equal(image[h.locker.Core.Attr.LockTime], ddb.Number(ddb.Seconds(until)))
	}
	opt.Stands = func(image ddb.Item) bool { return h.standsIn(image) && !arrived(image) }
	res := h.locker.Core.Update(ctx, in, opt)
	image := res.Shown()
	switch res.Outcome {
	case ddb.Applied:
	case ddb.Condition:
		if !h.standsIn(image) || !arrived(image) {
			return res, false
		}
	default:
		return res, false
	}
	h.noteQueue(image)
	h.ttl = ttl
	h.ahead.Store(int64(max(ahead, 0)))
	return res, true
}

// fades reports whether TTL may remove the item under a hold until a time: it is to have an
// hour of its life left then.
func (h *Lock) fades(until time.Time) bool {
	return !h.ttl.IsZero() && h.ttl.Before(h.locker.forgotten(until).Add(time.Hour-stubLife))
}

// lostRenewal judges the failed condition of a write that keeps the hold.
func (h *Lock) lostRenewal(res ddb.Result) error {
	res.Clean = res.Clean && !h.inDoubt
	if err := h.judge(res); err != nil {
		return err
	}
	if h.inDoubt { // the write without a verdict has ended the hold
		h.Finish(repo.ErrOutcomeUnknown)
		return UnknownOutcome(h.locker.Core.Table, h.key, errOneOfTwo)
	}
	return h.lost() // the hold is over, and not by a write of ours
}

// Leave sends an update of the item that leaves the lock in place, until the time that
// set gives it, and ends the hold: nobody looks after it any more. It is repeated as a
// commit is, as long as ctx allows and until the deadline has passed. If the service
// refuses it as invalid, set is asked for another one, and told why. made tells from an
// item whether it was applied, whatever has become of the lock.
func (h *Lock) Leave(ctx context.Context, set func(w *protocol.Write, refused error), made func(ddb.Item) protocol.Verdict) error {
	if err := h.BeginLast(ctx); err != nil {
		return err
	}
	defer h.Done()
	defer h.looks.end()
	if err := h.Usable(); err != nil {
		return err
	}
	h.Halt()
	repetition := ddb.Repetition{Pause: ddb.Backoff{Min: h.locker.Wait.Min, Max: h.locker.Wait.Max}, Clean: true, Late: h.Expired}
	again := func(res *ddb.Result) bool { return repetition.Again(ctx, res, ddb.Throttled(res.Err)) }
	err := h.write(ctx, func(w *protocol.Write) { set(w, nil) }, made, again)
	if invalid(err) {
		why := err
		err = h.write(ctx, func(w *protocol.Write) { set(w, why) }, made, again)
	}
	if err == nil {
		h.Finish(repo.ErrReleased)
	} else {
		h.Forget(repo.ErrReleased) // it ends with its lease at the latest
	}
	return err
}

// invalid reports whether the service has refused a request for what it says, whenever it
// would come: no attempt of it was applied.
func invalid(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "ValidationException" || api.ErrorCode() == "SerializationException")
}

// write sends an update of the item, as often as again says. The caller holds op.
func (h *Lock) write(ctx context.Context, set func(*protocol.Write), made func(ddb.Item) protocol.Verdict, again func(*ddb.Result) bool) error {
	res, err := h.sendOwn(ctx, set, func(image ddb.Item) bool { return made(image) != protocol.Committed }, again)
	if err != nil {
		return err
	}
	if res.Outcome != ddb.Condition {
		return Failed(h.locker.Core, h.key, res)
	}
	switch verdict := made(res.Image); {
	case verdict == protocol.Committed:
		return nil
	case verdict == protocol.Undecided && !h.standsIn(res.Image):
		return h.perhaps(errMoved)
	}
	return h.lostRenewal(res)
}

// holder is what the hold knows of itself. The caller holds op.
func (h *Lock) holder() protocol.Holder {
	return protocol.Holder{ID: h.id, Token: h.token, Seen: h.lastToken}
}

// judge turns the failed condition of a write of this hold into its error, and
// ends the hold where it is over. nil means that the write was applied.
func (h *Lock) judge(res ddb.Result) error {
	if res.Outcome != ddb.Condition {
		return Failed(h.locker.Core, h.key, res)
	}
	l, err := ParseRecord(h.locker.Core, h.key, res.Image)
	if err != nil && !res.Clean { // an earlier attempt may have been applied
		h.Finish(repo.ErrOutcomeUnknown)
		return UnknownOutcome(h.locker.Core.Table, h.key, err)
	}
	if err != nil {
		return err
	}
	h.found.Store(&l)
	switch protocol.JudgeCommit(l, h.holder(), !h.locker.Core.Absent(res.Image), res.Clean) {
	case protocol.Committed:
		return nil
	case protocol.Expired:
		h.Expire()
		return fmt.Errorf("%s, token %d: %w: the lease of %v was over; this wrote nothing", h.locker.Core.ItemName(h.key), h.token, repo.ErrLockExpired, h.locker.Lease)
	case protocol.Lost:
		return h.lost()
	}
	h.Finish(repo.ErrOutcomeUnknown)
	return UnknownOutcome(h.locker.Core.Table, h.key, h.undecided(l, res.Image))
}

func (h *Lock) lost() error { return fmt.Errorf("%w: this wrote nothing", h.Lose()) }
