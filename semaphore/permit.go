package semaphore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Permit is the right to use a resource, one of as many as its limit says. It
// is safe for concurrent use; it ends with Release, or its loss, and renews
// itself until then.
type Permit struct {
	lease *lease.Lease
	s     *Semaphore
	name  string
	attr  string // its attribute on the resource
	token int64  // set before the permit is handed out
	once  bool   // its attribute cannot come twice: no try of the Acquire was without an answer, nor of those before it

	found bool // an earlier attempt has got it: its token is to be drawn

	streak int       // how often it was passed on in this process
	since  time.Time // when it was taken from the table
}

func (s *Semaphore) newPermit(name, attr string, token int64, sent, until time.Time) *Permit {
	h := &Permit{s: s, name: name, attr: attr, token: token}
	h.lease = lease.New(&s.lease, (*leasedPermit)(h), sent.Add(s.cfg.Lease), until)
	return h
}

// leasedPermit is a permit as its lease knows it.
type leasedPermit Permit

// Renew moves the end of the permit.
func (h *leasedPermit) Renew(ctx context.Context, until time.Time) error {
	w, end := h.s.table.Core.NewWrite(), ddb.Number(ddb.Seconds(until))
	w.Set(h.attr, end)
	w.If(w.Name(h.attr) + " < " + w.Value(end)) // a late copy must not move the end back
	stands := func(row ddb.Item) bool { return (*Permit)(h).standsIn(row) && !ddb.Equal(row[h.attr], end) }
	res := h.s.table.Write(ctx, h.name, w, ddb.Options{NoGrace: true, Holding: true, Absence: true, Stands: stands})
	if res.Outcome == ddb.Condition && !ddb.Equal(res.Image[h.attr], end) {
		h.s.open.Remove((*Permit)(h))
		err := h.lease.Lose()
		h.s.dropped((*Permit)(h))
		return err
	}
	if res.Outcome == ddb.Unknown {
		return resources.Unknown(h.name, res.Err)
	}
	return res.Err
}

// Describe says of an error which permit it is about.
func (h *leasedPermit) Describe(err error) error {
	return fmt.Errorf("permit for %q, token %d: %w", h.name, h.token, err)
}

// Name is what the log says of the permit.
func (h *leasedPermit) Name() (kind string, which []slog.Attr) {
	return "permit", []slog.Attr{slog.String("resource", h.name), slog.Int64("token", h.token)}
}

// begin starts what its caller gets.
func (h *Permit) begin(ctx context.Context) (*Permit, error) {
	if !h.found {
		h.lease.Start(ctx)
		return h, nil
	}
	if err := h.refreshToken(ctx); err != nil {
		return nil, errors.Join(err, h.Release(ctx))
	}
	h.lease.Taken(ctx)
	return h, nil
}

// refreshToken draws the token of a permit whose answer was lost: others may have
// drawn since. It also moves the end, which may be that of an earlier try. One
// request, one more for each that has no answer.
func (h *Permit) refreshToken(ctx context.Context) error {
	if err := h.lease.Begin(ctx); err != nil {
		return err
	}
	defer h.lease.Done()
	for {
		asked, until := h.lease.NextEnd()
		w := h.s.table.Core.NewWrite()
		h.s.table.NextToken(w, h.s.table.Clock())
		end := ddb.Number(ddb.Seconds(until))
		w.Set(h.attr, end)
		w.If(w.Name(h.attr) + " < " + w.Value(end)) // a late copy must not move the end back
		in := resources.Update(w, resources.Key(h.name))
		in.ReturnValues = types.ReturnValueAllNew
		res := h.s.table.Core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true, Absence: true})
		switch {
		case res.Outcome == ddb.Condition && !ddb.Equal(res.Image[h.attr], end): // others have removed it, or moved its end
			return h.lease.Lose()
		case res.Outcome == ddb.Condition && ctx.Err() == nil:
			continue // an answer was lost, and with it the token
		case res.Outcome == ddb.Condition:
			return fmt.Errorf("resource %q: no permit: %w", h.name, ddb.CtxError(ctx))
		case res.Outcome != ddb.Applied:
			return fmt.Errorf("resource %q: no permit: %w", h.name, res.Err)
		}
		r, err := h.s.table.Parse(h.name, res.Item)
		h.token = r.Token
		h.lease.Renewed(asked) // starts the timer
		return err
	}
}

// ID names the permit among those of its resource: [Semaphore.Permits] shows it, and
// [Semaphore.BreakPermit] takes it.
func (h *Permit) ID() string { return strings.TrimPrefix(h.attr, resources.PermitPrefix) }

// Resource is the resource that may be used.
func (h *Permit) Resource() string { return h.name }

// Format prints the resource and the token.
func (h *Permit) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "permit for %q, token %d", h.name, h.token)
}

// Token is the fencing token: it grows with every permit and every start of a
// job of the resource. Where the limit is 1, an outside resource that refuses
// smaller ones is protected.
func (h *Permit) Token() int64 { return h.token }

// Until is when the holder must stop, on its own clock, unless a renewal moves
// it.
func (h *Permit) Until() time.Time { return h.lease.Until() }

// Context is cancelled when the permit ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased. With it an Acquire of the same resource is ErrNested, if
// its limit is used up by what the context holds.
func (h *Permit) Context() context.Context { return h.inside(h.lease.Context()) }

// Extend moves the end of the lease to a full lease from now, before the
// permit does it by itself. One request. It gives way to a Release that comes
// meanwhile, with ErrReleased.
func (h *Permit) Extend(ctx context.Context) error { return h.lease.Extend(ctx) }

// Release gives the permit back. A second call does nothing, for use with
// defer, and it works although ctx is done: it then has 3 s of its own.
// ErrLockLost if others took the permit for dead, and ErrOutcomeUnknown where
// it is gone after its lease was over and nothing tells who removed it. One
// request.
func (h *Permit) Release(ctx context.Context) (err error) {
	ctx, span := h.s.table.Core.Observe.Call(ctx, telemetry.Permit, "Release", h.Resource)
	defer span.End(&err)
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	if err := h.release(ctx, repo.ErrReleased); !h.ended() {
		return err
	}
	return nil
}

// release is Release as long as ctx allows; why is the cause of the context's end.
func (h *Permit) release(ctx context.Context, why error) error {
	back := h.s.releaseWrite(h.name, h.attr)
	p, in := h.s.next(h), back
	if p.to != nil {
		in = h.s.handOffWrite(h.name, h.attr, p)
	}
	last, clean := ddb.Result{Clean: true}, true
	defer func() { h.passedOn(ctx, p, last) }() // also if the client panics
	err := h.lease.End(ctx, why, func() (ddb.Result, bool) {
		send := func() {
			last = ddb.Result{} // nobody knows yet
			last = h.s.table.Core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true, Absence: true, Stands: h.standsIn})
			clean = clean && last.Clean
		}
		if send(); in != back && last.Outcome == ddb.Condition && h.standsIn(last.Image) {
			in = back // what is refused is that another gets it
			send()
		}
		last.Clean = clean
		return last, last.Outcome == ddb.Refused && ddb.Conflicted(last.Err)
	}, func(res ddb.Result) error { return h.judgeRelease(res, p) })
	if err == nil || h.lease.Ended() != nil {
		h.s.open.Remove(h)
	}
	return err
}

// passedOn tells who was to have the permit what has become of that, by the answer to the
// last request, and gives back what that one does not want any more.
func (h *Permit) passedOn(ctx context.Context, p handoff, last ddb.Result) {
	switch unwanted, doubt := h.s.handedOff(h, p, last); {
	case unwanted != nil:
		ddb.CleanUp(ctx, func(ctx context.Context) { _ = unwanted.release(ctx, repo.ErrReleased) })
	case doubt:
		ddb.CleanUp(ctx, func(ctx context.Context) { h.s.releaseUnanswered(ctx, h.name, p.to.attr) })
	}
}

// standsIn reports whether the row of the resource shows the permit.
func (h *Permit) standsIn(row ddb.Item) bool { return row[h.attr] != nil }

// judgeRelease tells from the answer to the last request what became of the permit.
func (h *Permit) judgeRelease(res ddb.Result, p handoff) error {
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Refused:
		return res.Err // certainly not sent, or not applied
	case ddb.Condition:
		switch h.judgeGone(res.Image, p) {
		case resources.ByThisEnd:
			return nil
		case resources.ByOthers:
			return h.lease.Lose()
		}
	}
	return resources.Unknown(h.name, res.Err)
}

// judgeGone judges a release that has found the permit gone from the row.
func (h *Permit) judgeGone(row ddb.Item, p handoff) resources.Gone {
	passed := p.to != nil && row[p.to.attr] != nil
	broken := resources.Broken(row, h.ID())
	evidence := broken || resources.Removed(row, h.attr)
	return resources.JudgeGone(passed, evidence && h.once, broken || len(row) == 0, h.lease.Expired())
}

// releaseUnanswered gives back a permit that a try without an answer may have taken.
func (s *Semaphore) releaseUnanswered(ctx context.Context, name, attr string) {
	s.table.Core.Update(ctx, s.releaseWrite(name, attr), ddb.Options{NoGrace: true, Holding: true})
}

// releaseWrite is the request that gives a permit back.
func (s *Semaphore) releaseWrite(name, attr string) *dynamodb.UpdateItemInput {
	w := s.table.Core.NewWrite()
	w.Remove(attr)
	if s.cfg.NamePermits {
		w.Remove(resources.OwnerAttr(attr))
	}
	s.table.GiveBack(w)
	w.IfExists(attr)
	return resources.Update(w, resources.Key(name))
}
