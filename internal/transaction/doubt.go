package transaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// among goes on after an answer that says that others were at the items: it sleeps, and
// looks at what it has read before the same is sent again. What was read before others
// wrote would be committed in vain, while its items refuse everybody else.
func (m *commit) among(ctx context.Context, res ddb.Result) (lockless.Step, error) {
	c := m.call
	bound := m.unlocked()
	waits, last := m.pause(ctx, res)
	why := m.exhausted(res)
	if ctx.Err() != nil {
		return lockless.FindOut, because(why, ddb.CtxError(ctx))
	}
	if len(bound) == 0 {
		return lockless.Busy.Next(protocol.Undecided, last), why
	}
	moment := c.tick()
	images, err := c.readAll(ctx, bound)
	if err != nil {
		return lockless.FindOut, err
	}
	evidence := m.lookAt(bound, images)
	switch step := lockless.Busy.Next(evidence, last); {
	case step == lockless.Conclude:
		m.concludeLate(ctx)
		return step, nil
	case step == lockless.SendOther && last:
		return step, why
	case step == lockless.SendOther || step == lockless.SendSame && waits:
		// The lock that is waited for ends what the request demands.
		if step == lockless.SendSame {
			c.perhaps = m.perhaps()
		}
		for i, e := range bound {
			e.readAs(images[i], moment)
		}
		return lockless.SendOther, errAgain
	default:
		return step, why
	}
}

// pause sleeps after an answer that says that others were at the items, unless the call is
// to wait in their queues instead, or this was the last request that it makes.
func (m *commit) pause(ctx context.Context, res ddb.Result) (waits, last bool) {
	waits = m.call.lineUp(m.conflicting(res))
	tries, last := m.call.refused()
	if ddb.Throttled(res.Err) && !ddb.Conflicted(res.Err) {
		last = last || !m.valid() // the client's policy has been patient enough
	}
	if !last && !waits && (len(m.held) == 0 || tries > atOnce) { // else others wait for what is held
		m.call.sleep(ctx, 0)
	}
	return waits, last
}

// conflicting are the items, of those that the request demands as they were read, at which
// others were when it came.
func (m *commit) conflicting(res ddb.Result) (items []*entry) {
	for i, err := range reasons(res) {
		if err != nil && i < len(m.parts) && m.parts[i].bound() {
			items = append(items, m.parts[i].entry)
		}
	}
	return items
}

// reasons are why parts of a request stood in its way, beside their conditions.
func reasons(res ddb.Result) []error {
	if res.Outcome != ddb.Condition {
		return ddb.Reasons(res.Err)
	}
	all := make([]error, len(res.Images))
	for i, image := range res.Images {
		all[i] = image.Busy
	}
	return all
}

// lookAt is what items tell of the request that were read after its answer.
func (m *commit) lookAt(items []*entry, images []ddb.Item) protocol.Verdict {
	at := map[*entry]ddb.Item{}
	for i, e := range items {
		at[e] = images[i]
	}
	var looks []lockless.Look
	for _, p := range m.parts {
		image, read := at[p.entry]
		if !read {
			continue
		}
		looks = append(looks, lockless.LookAt(p.core, p.judged(), m.id, image), lockless.Look{Applied: m.landed(p.core, image) == protocol.Committed})
	}
	return lockless.JudgeLooks(append(looks, lockless.Look{Applied: m.witnessed() == protocol.Committed})...)
}

// valid reports whether something is held, all of it in time.
func (m *commit) valid() bool {
	return len(m.held) > 0 && !slices.ContainsFunc(m.held, func(p *part) bool { return !p.ending.Valid() })
}

// concludeLate notes that a look at the items has shown that the request is applied.
func (m *commit) concludeLate(ctx context.Context) {
	for _, p := range m.held {
		if h := p.turn.Lock; h.BeginLast(ctx) == nil {
			defer h.Done()
		}
	}
	m.ended(ctx, lockless.Conclude)
}

// settle finds out, by releasing what is held, whether a transaction in doubt was
// applied: each release finds its lock in place, or the item as it is without. why is what
// is told where it was not; nil: that of the request.
func (m *commit) settle(ctx context.Context, res ddb.Result, why error) error {
	back, cancel := ddb.Cleaning(ctx) // for all releases together
	defer cancel()
	verdict := protocol.Undecided
	for _, p := range m.held {
		h := p.turn.Lock
		if m.out.doubted && p.ending != nil && h.BeginLast(back) == nil {
			p.ending.InDoubt(p.removed(), m.trace(ctx, p))
			h.Done()
		}
		_ = p.release(back, m.call)
		verdict = lockless.JudgeParts(verdict, h.OutcomeOfUndecided())
	}
	verdict = lockless.JudgeParts(verdict, m.settleRows(back))
	if verdict == protocol.Undecided {
		verdict = cmp.Or(m.shown(ctx), m.witnessed())
	}
	cause := cmp.Or(res.Err, why, errNoEvidence)
	if why != nil && ctx.Err() != nil {
		cause = ddb.Join(ddb.CtxError(ctx), cause)
	}
	switch {
	case verdict == protocol.Committed:
		m.mine.applied()
		return nil
	case verdict == protocol.Lost && why != nil:
		return why
	case verdict == protocol.Lost:
		if why := m.othersClaims(ctx); why != nil {
			return why
		}
		if res.Outcome == ddb.Condition {
			cause = errRefused
		}
		return fail(m.all(cause, lock.Unwritten)...)
	}
	return fail(m.all(cause, lock.UnknownOutcome)...)
}

// errRefused is why a request in doubt was not applied, nor will be: its conditions have
// failed, as of any other.
var errRefused = fmt.Errorf("%w: an attempt of the transaction was refused behind one without a clear answer", repo.ErrConflict)

// refused is what follows then. What was given back to find that out is taken again; what is
// not the call's to take again has ended, and that is the error.
func (m *commit) refused(ctx context.Context, res ddb.Result, err error) error {
	var held []*entry
	for _, p := range m.held {
		held = append(held, p.entry)
	}
	lent := func(e *entry) bool { return e.lent }
	ends := func(r *rows.Row) bool { _, ends := r.Ending(); return ends }
	if slices.ContainsFunc(held, lent) || slices.ContainsFunc(m.sent, ends) {
		return err
	}
	for _, e := range held {
		e.wanted = true
	}
	if err := m.other(ctx, res); len(held) == 0 || !errors.Is(err, errForm) {
		return err
	}
	return m.call.retake(ctx, held) // another form of this run would end what it holds no more
}

// trace is what an image of a part that is held tells of the request.
func (m *commit) trace(ctx context.Context, p *part) lock.Trace {
	if !p.changed() || p.removed() {
		return nil
	}
	return func(image ddb.Item) protocol.Verdict {
		seen := lockless.Look{Applied: m.call.once.Shows(ctx, p.core, image)}
		return lockless.JudgeParts(lockless.JudgeLooks(seen), m.landed(p.core, image), lockless.RingSince(p.core, m.id, p.entry.image, image))
	}
}

// shown reads the items that the transaction writes, and the rows, until one tells what became
// of it. That none shows it proves nothing: others may have written since, or the request may
// still be on its way.
func (m *commit) shown(ctx context.Context) protocol.Verdict {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for _, p := range m.parts {
		if !p.changed() || p.removed() || p.ending != nil {
			continue
		}
		image, err := p.core.Get(ctx, p.raw)
		if err != nil {
			continue
		}
		if m.call.once.Shown(ctx, p.core, m.id, image) || m.landed(p.core, image) == protocol.Committed {
			return protocol.Committed
		}
		if v := lockless.JudgePart(p.core, p.judged(), m.id, image, false); v != protocol.Undecided {
			return v
		}
	}
	for _, r := range m.sent {
		if _, ends := r.Ending(); ends { // of which settleRows tells
			continue
		}
		image, err := r.Table.Get(ctx, r.Raw)
		if err == nil && r.Judge(ctx, image, false) == protocol.Committed { // one that was not may be made yet
			return protocol.Committed
		}
	}
	return protocol.Undecided
}

var errNoEvidence = errors.New("an attempt of the transaction had no clear answer, and the items show no evidence of it, nor against it")
