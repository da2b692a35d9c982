package semaphore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// Permit is the right to use a resource, one of as many as its limit says. It
// is safe for concurrent use; it ends with Release, or its loss, and renews
// itself until then.
type Permit struct {
	keep  *lease.Lease
	p     *store
	name  string
	attr  string    // its attribute on the resource
	token int64     // set before the permit is handed out
	beats time.Time // guarded by keep's op: the greatest end that was ever sent
	once  bool      // its attribute cannot have been there before: no earlier try was without an answer
}

// Acquire takes a permit of a resource, waiting as long as ctx allows. One
// request if one is free, one more per try. ErrBusy, with *BusyError, if the
// waiting ended first. A resource that nobody has used is registered.
//
// Waiting is not in order: package ticket has a queue. ctx governs the waiting,
// never the holding.
func (s *Semaphore[J]) Acquire(ctx context.Context, resource string) (*Permit, error) {
	return s.permit(ctx, resource, false)
}

// TryAcquire is Acquire without waiting. One request, one more if it comes
// across permits whose holders are dead.
func (s *Semaphore[J]) TryAcquire(ctx context.Context, resource string) (*Permit, error) {
	return s.permit(ctx, resource, true)
}

// Do runs fn while it holds a permit of a resource. The context of fn ends with
// ctx, and, with the cause, when the permit is lost.
func (s *Semaphore[J]) Do(ctx context.Context, resource string, fn func(ctx context.Context, p *Permit) error) (err error) {
	if fn == nil {
		return fmt.Errorf("%w: the function is nil", repo.ErrConfig)
	}
	p, err := s.Acquire(ctx, resource)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Release(ctx)) }()
	work, cancel := ddb.Merge(ctx, p.Context()) // the release needs ctx itself
	defer cancel()
	return fn(work, p)
}

func (s *Semaphore[J]) permit(ctx context.Context, resource string, once bool) (*Permit, error) {
	if err := s.checkName(resource); err != nil {
		return nil, err
	}
	return s.acquire(ctx, resource, once)
}

func (p *store) newPermit(name, attr string, token int64, sent, until time.Time) *Permit {
	h := &Permit{p: p, name: name, attr: attr, token: token, beats: until}
	h.keep = lease.New(p.cfg.leaseConfig(h.failed), sent.Add(p.cfg.Lease), h.renew)
	return h
}

// leaseConfig is how permits and jobs are kept.
func (c Config) leaseConfig(failed func(error)) lease.Config {
	return lease.Config{Length: c.Lease, Every: c.Lease / 3, Margin: lock.Margin(c.Lease), Failed: failed}
}

// insisting is the pause between the tries to end a permit or a job.
func (c Config) insisting() ddb.Backoff { return ddb.Backoff{Min: c.Wait.Min, Max: c.Wait.Max} }

// refreshToken draws the token of a permit whose answer was lost: others may have
// drawn since. It also moves the end, which may be that of an earlier try. One
// request.
func (h *Permit) refreshToken(ctx context.Context) (*Permit, error) {
	again, err := true, error(nil)
	for again && err == nil {
		again, err = h.draw(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.Release(ctx))
	}
	return h, nil
}

// draw sends one request of refreshToken; again says that an answer to it was lost.
func (h *Permit) draw(ctx context.Context) (again bool, _ error) {
	if err := h.keep.Begin(ctx); err != nil {
		return false, err
	}
	defer h.keep.Done()
	asked := time.Now()
	h.beats = ddb.Later(h.p.clock().Add(h.p.cfg.Lease), h.beats)
	w := h.p.core.NewWrite()
	h.p.nextToken(w, h.p.clock())
	until := w.Value(ddb.Number(ddb.Seconds(h.beats)))
	w.SetTo(h.attr, until)
	w.If(w.Name(h.attr) + " < " + until) // a late copy must not move the end back
	in, err := w.Update(resourceKey(h.name))
	if err != nil {
		return false, repo.Classify(err)
	}
	in.ReturnValues = types.ReturnValueAllNew
	res := h.p.core.Update(ctx, in, ddb.Options{Timeout: h.p.cfg.Lease / 3, NoGrace: true, Holding: true, Absence: true})
	switch {
	case res.Outcome == ddb.Condition && res.Image[h.attr] != nil && ctx.Err() != nil:
		return false, fmt.Errorf("resource %q: no permit: %w", h.name, ddb.CtxError(ctx))
	case res.Outcome == ddb.Condition && res.Image[h.attr] != nil:
		return true, nil
	case res.Outcome == ddb.Condition:
		return false, h.lost()
	case res.Outcome != ddb.Applied:
		return false, repo.Classify(fmt.Errorf("resource %q: no permit: %w", h.name, res.Err))
	}
	r, err := parseResource(h.name, res.Item, h.p.cfg)
	h.token = r.token
	h.keep.Renewed(asked.Add(h.p.cfg.Lease)) // starts the timer
	return false, err
}

// Resource is the resource that may be used.
func (h *Permit) Resource() string { return h.name }

// Token is the fencing token: it grows with every permit and every start of a
// job of the resource. Where the limit is 1, an outside resource that refuses
// smaller ones is protected.
func (h *Permit) Token() int64 { return h.token }

// Until is when the holder must stop, on its own clock, unless a renewal moves
// it.
func (h *Permit) Until() time.Time { return h.keep.Until() }

// Context is cancelled when the permit ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased.
func (h *Permit) Context() context.Context { return h.keep.Context() }

// Extend moves the end of the lease to a full lease from now, before the
// permit does it by itself. One request. It gives way to a Release that comes
// meanwhile, with ErrReleased.
func (h *Permit) Extend(ctx context.Context) error { return h.keep.Extend(ctx) }

func (h *Permit) usable() error {
	if why := h.keep.Ended(); why != nil {
		return fmt.Errorf("permit for %q, token %d: %w", h.name, h.token, why)
	}
	return nil
}

// renew sends the renewal. The caller holds op.
func (h *Permit) renew(ctx context.Context) error {
	if err := h.usable(); err != nil {
		return err
	}
	if cause := context.Cause(h.keep.Context()); cause != nil {
		return cause
	}
	asked := time.Now()
	h.beats = ddb.Later(h.p.clock().Add(h.p.cfg.Lease), h.beats)
	w := h.p.core.NewWrite()
	until := ddb.Number(ddb.Seconds(h.beats))
	w.Set(h.attr, until)
	w.If(w.Name(h.attr) + " < " + w.Value(until))
	in, err := w.Update(resourceKey(h.name))
	if err != nil {
		return repo.Classify(err)
	}
	res := h.p.core.Update(ctx, in, ddb.Options{Timeout: h.p.cfg.Lease / 3, NoGrace: true, Holding: true, Absence: true})
	switch {
	case res.Outcome == ddb.Condition && ddb.Equal(res.Image[h.attr], until):
	case res.Outcome == ddb.Condition:
		return h.lost()
	case res.Outcome != ddb.Applied:
		return repo.Classify(res.Err)
	}
	h.keep.Renewed(asked.Add(h.p.cfg.Lease))
	return nil
}

func (h *Permit) failed(err error) {
	h.p.core.Observe.Log.Warn("dynahold: a permit could not be renewed yet", slog.String("table", h.p.core.Name),
		slog.String("resource", h.name), slog.Int64("token", h.token), slog.Any("error", err))
}

func (h *Permit) lost() error {
	h.keep.Finish(repo.ErrLockLost)
	return fmt.Errorf("permit for %q, token %d: %w", h.name, h.token, repo.ErrLockLost)
}

// Release gives the permit back. A second call does nothing, for use with
// defer, and it works although ctx is done: it then has 3 s of its own.
// ErrLockLost if others took the permit for dead, and ErrOutcomeUnknown where
// it is gone after its lease was over and nothing tells who removed it. One
// request.
func (h *Permit) Release(ctx context.Context) error {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	if err := h.keep.BeginLast(ctx); err != nil { // another Release is under way
		h.keep.Forget(repo.ErrReleased) // nothing renews it any more
		return fmt.Errorf("permit for %q, token %d: %w: %w", h.name, h.token, repo.ErrOutcomeUnknown, err)
	}
	defer h.keep.Done()
	if errors.Is(h.keep.Ended(), repo.ErrReleased) {
		return nil
	}
	if err := h.usable(); err != nil {
		return err
	}
	h.keep.Halt()
	in, err := h.p.giveBack(h.name, h.attr)
	if err != nil {
		return repo.Classify(err)
	}
	res := ddb.UntilDecided(ctx, h.p.cfg.insisting(), true, h.keep.Expired, func() (ddb.Result, bool) {
		res := h.p.core.Update(ctx, in, ddb.Options{Timeout: h.p.cfg.Lease / 3, NoGrace: true, Holding: true})
		return res, res.Outcome == ddb.Refused && ddb.Conflicted(res.Err)
	})
	switch {
	case res.Outcome == ddb.Applied:
		h.keep.Finish(repo.ErrReleased)
		return nil
	case res.Outcome == ddb.Condition && h.once && sweptFrom(res.Image, h.attr):
		return h.lost()
	case res.Outcome == ddb.Condition && !h.keep.Expired():
		// Before the deadline nobody else takes it for dead: this release has
		// removed it, or a copy of it that the network made.
		h.keep.Finish(repo.ErrReleased)
		return nil
	case res.Outcome == ddb.Refused:
		h.keep.Forget(repo.ErrReleased)
		return repo.Classify(res.Err)
	}
	h.keep.Forget(repo.ErrReleased) // it ends with its lease at the latest
	return unknown(h.name, res.Err)
}
