package transaction

import (
	"context"
	"errors"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
)

// judge says what came of a request; nil: it was applied.
func (m *commit) judge(ctx context.Context, res ddb.Result) error {
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Condition:
		return m.refused(ctx, res)
	case ddb.Unknown:
		return errDoubt
	}
	valid := len(m.held) > 0 && !slices.ContainsFunc(m.held, func(p *part) bool { return !p.ending.Valid() })
	if ddb.Conflicted(res.Err) || valid && ddb.Throttled(res.Err) {
		return errBusy
	}
	if failed := m.reasons(res.Err); failed != nil {
		return failed
	}
	if len(m.parts) == 1 && len(m.sent) == 0 {
		return fail(m.parts[0].failure(res.Err))
	}
	return m.call.explain(ctx, m.cores(m.sent), res.Err)
}

// refused draws the conclusion from the images of the items whose condition failed.
func (m *commit) refused(ctx context.Context, res ddb.Result) error {
	verdicts := m.judgeRows(ctx, res)
	queue := false
	for i, p := range m.parts {
		if i >= len(res.Images) || !res.Images[i].Failed {
			continue
		}
		p.failed, p.image = true, res.Images[i].Item
		p.core.Saw(p.image)
		verdicts = append(verdicts, p.core.JudgePart(p.judged(), m.id, p.image, res.Clean))
		if p.queue = p.ending != nil && p.ending.RefusedByQueue(p.image); p.queue {
			queue = true
			verdicts = append(verdicts, protocol.Lost) // and the request is refused for ever
		}
	}
	if protocol.JudgeParts(verdicts...) == protocol.Undecided {
		verdicts = append(verdicts, m.witnessed())
	}
	switch verdict := protocol.JudgeParts(verdicts...); {
	case verdict == protocol.Committed:
		return nil
	case slices.ContainsFunc(m.parts, func(p *part) bool { return p.failed && m.call.once.In(p.core, p.image) }):
		return errMade // by another run of the same, or by an attempt that others have covered
	case verdict == protocol.Undecided:
		return errDoubt
	}
	broken, again := m.refusedRows(ctx, res)
	var refused []Failure
	failed := 0
	for _, p := range m.parts {
		if !p.failed {
			continue
		}
		failed++
		if err := p.waiter.CheckShape(p.image); err != nil {
			broken = append(broken, p.failure(err))
		} else if p.conditionFails(m.call.once) {
			refused = append(refused, p.failure(p.blind.Condition(p.image)))
		} else if p.ending != nil && !p.queue {
			broken = append(broken, p.failure(p.ending.Lost(p.image)))
		}
	}
	if broken != nil {
		return fail(broken...)
	}
	if failed > 0 && len(refused) == failed { // all else that the transaction demands was there at that moment
		return fail(refused...)
	}
	return m.runAgain(queue || again)
}

// runAgain notes what the images show, for another run. What somebody else holds is
// waited for before that, which is no try in vain. form says that the same run may be
// written in another form.
func (m *commit) runAgain(form bool) error {
	awaited := false
	for _, p := range m.parts {
		if !p.failed || p.ending != nil {
			continue
		}
		e := p.entry
		e.refuted = e.moment.assumed() && (e.blind == nil || e.blind.Check != nil)
		e.known, e.image, e.moment = true, p.image, m.call.tick()
		switch {
		case e.image[e.core.Attr.LockedBy] != nil:
			e.lineUp()
			e.known, e.awaited, awaited = false, e.locker == nil, true
			e.wanted = e.locker != nil
		case len(e.image) == 0, e.locker != nil:
			e.known = false // an endpoint may show no image; and who locks, locks
			m.wrote = append(m.wrote, e)
		default:
			m.wrote = append(m.wrote, e)
		}
	}
	if form && !awaited && len(m.wrote) == 0 {
		return errForm
	}
	return errAgain
}

// settle finds out, by releasing what is held, whether a transaction in doubt was
// applied: each release finds its lock in place, or ended by the transaction.
func (m *commit) settle(ctx context.Context, res ddb.Result) error {
	back, cancel := ddb.Cleaning(ctx) // for all releases together
	defer cancel()
	verdict := protocol.Undecided
	for _, p := range m.held {
		h := p.turn.Lock
		p.release(back, m.call)
		verdict = protocol.JudgeParts(verdict, h.OutcomeOfUndecided())
	}
	verdict = protocol.JudgeParts(verdict, m.settleRows(back))
	if verdict == protocol.Undecided && m.shown(ctx) {
		verdict = protocol.Committed
	}
	if verdict == protocol.Undecided {
		verdict = m.witnessed()
	}
	why := res.Err
	if why == nil {
		why = errNoEvidence
	}
	switch verdict {
	case protocol.Committed:
		m.appliedRows()
		return nil
	case protocol.Lost:
		return fail(m.all(why, lock.Unwritten)...)
	}
	return fail(m.all(why, lock.UnknownOutcome)...)
}

// expect looks for the last request in what the process gets to see of an item that it
// writes: one that is evidence for it, or against it, is that for the whole.
func (m *commit) expect(p *part) {
	if !p.changed() {
		return // it keeps no trace
	}
	var base []byte
	if p.ending == nil && p.blind == nil { // else it demands the lock alone, or nothing of what was read
		base = p.core.Ring(p.entry.image)
	}
	m.seen = append(m.seen, p.core.Expect(m.id, base))
}

// endSeen ends expect.
func (m *commit) endSeen() {
	for _, e := range m.seen {
		e.End()
	}
	m.seen = nil
}

// witnessed is what the process has seen of the last request.
func (m *commit) witnessed() protocol.Verdict {
	verdict := protocol.Undecided
	for _, e := range m.seen {
		v, _ := e.Verdict()
		verdict = protocol.JudgeParts(verdict, v)
	}
	return verdict
}

// shown reads the items that the transaction writes, until one shows that it was
// applied. That none does proves nothing: others may have written since, or the
// request may still be on its way.
func (m *commit) shown(ctx context.Context) bool {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for _, p := range m.parts {
		if !p.changed() || p.removed() || p.ending != nil {
			continue
		}
		image, err := p.core.Get(ctx, p.raw)
		if err == nil && m.call.once.Shown(p.core, m.id, image) {
			return true
		}
	}
	return false
}

var errNoEvidence = errors.New("an attempt of the transaction had no clear answer, and the items show no evidence of it, nor against it")
