package transaction

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
)

// judge says what is to be done after a request, by its answer.
func (m *commit) judge(ctx context.Context, res ddb.Result) lockless.Step {
	answer := m.answered(res)
	evidence := protocol.Undecided
	if res.Outcome == ddb.Condition {
		evidence = m.evidence(ctx, res, res.Clean && answer == lockless.Condition)
		if evidence != protocol.Committed && m.made(ctx) {
			evidence = protocol.Lost // this request; by which one it was made is all the same
		}
	}
	// A copy of what is denied is denied, too. Whoever has left was refused for the moment: a
	// copy may come yet.
	if res.Outcome == ddb.Refused && answer == lockless.Silence && ctx.Err() == nil && m.unchanged(ctx) {
		return lockless.Fail
	}
	return answer.Next(evidence, false)
}

// unchanged reports whether an item that the request changes is as it was read: then
// nothing of the whole was applied.
func (m *commit) unchanged(ctx context.Context) bool {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for _, p := range m.parts {
		if p.changed() && p.blind == nil && !p.core.Absent(p.entry.image) {
			image, err := p.core.Get(ctx, p.raw)
			return err == nil && ddb.EqualItems(image, p.entry.image)
		}
	}
	return false
}

// answered is the kind of an answer.
func (m *commit) answered(res ddb.Result) lockless.Answer {
	switch res.Outcome {
	case ddb.Applied:
		return lockless.Success
	case ddb.Unknown:
		return lockless.Silence
	case ddb.Condition:
		if slices.ContainsFunc(res.Images, func(i ddb.Image) bool { return i.Busy != nil }) {
			return lockless.Busy // what was found at the others may have stood beside a copy that was at work
		}
		return lockless.Condition
	}
	switch {
	case ddb.Conflicted(res.Err), ddb.Throttled(res.Err):
		return lockless.Busy
	case res.Unjudged:
		return lockless.Silence // it was refused, but of a copy of it that says nothing
	}
	return lockless.Denied
}

// evidence is what the images of the items tell whose condition has failed; clean says
// that no attempt of the request may have been applied before.
func (m *commit) evidence(ctx context.Context, res ddb.Result, clean bool) protocol.Verdict {
	verdicts := m.judgeRows(ctx, res, clean)
	for i, p := range m.parts {
		if i >= len(res.Images) || !res.Images[i].Failed {
			continue
		}
		p.failed, p.image = true, res.Images[i].Item
		p.core.Saw(p.image)
		judge := lockless.JudgePart
		if m.out.alone {
			judge = lockless.JudgeAlone
		}
		verdicts = append(verdicts, judge(p.core, p.judged(), m.id, p.image, clean), m.landed(p.core, p.image))
		if p.queue = p.ending != nil && p.ending.RefusedByQueue(p.image); p.queue {
			verdicts = append(verdicts, protocol.Lost) // the request is refused for ever
		}
	}
	return cmp.Or(lockless.JudgeParts(verdicts...), m.witnessed())
}

// made reports whether an item shows that the transaction was applied by another run of the
// same id, or by an attempt that others have covered.
func (m *commit) made(ctx context.Context) bool {
	return slices.ContainsFunc(m.parts, func(p *part) bool { return p.failed && m.call.once.Shows(ctx, p.core, p.image) })
}

// other draws the conclusion from the images of the items whose condition failed, when
// nothing of the request was applied, nor will be.
func (m *commit) other(ctx context.Context, res ddb.Result) error {
	broken, again, anew := m.refusedRows(ctx, res)
	var refused []Failure
	failed := 0
	for _, p := range m.parts {
		if !p.failed {
			continue
		}
		failed++
		again = again || p.queue
		if err := p.waiter.CheckShape(p.image); err != nil {
			broken = append(broken, p.failure(err))
		} else if p.conditionFails(m.call.once) {
			refused = append(refused, p.failure(p.blind.Condition(p.image)))
		} else if p.ending != nil && !p.queue {
			err := p.ending.Lost(p.image)
			if p.again = p.inQueue(); !p.again {
				broken = append(broken, p.failure(err))
			}
		}
	}
	switch {
	case m.made(ctx):
		return errMade
	case broken != nil:
		return fail(broken...)
	case failed > 0 && len(refused) == failed && m.answered(res) == lockless.Condition:
		return fail(refused...) // all else that the transaction demands was there at that moment
	}
	return m.runAgain(ctx, again && !anew)
}

// runAgain notes what the images show, for another run, and asks for that. What somebody
// else holds is waited for before that, which is no try in vain. form says that the same
// run may be written in another form.
func (m *commit) runAgain(ctx context.Context, form bool) error {
	awaited := false
	m.wrote = nil
	for _, p := range m.parts {
		if !p.failed || p.ending != nil && !p.again {
			continue
		}
		e := p.entry
		if p.again {
			e.wanted = true
			m.wrote = append(m.wrote, e)
			continue
		}
		e.refuted = e.moment.assumed() && (e.blind == nil || e.blind.Check != nil)
		e.known, e.image, e.moment = true, p.image, m.call.tick()
		switch {
		case e.image[e.core.Attr.LockedBy] != nil && e.ifFree == nil: // else its caller waits
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
	switch {
	case form && !awaited && len(m.wrote) == 0:
		return errForm
	case len(m.wrote) == 0:
		return errAgain
	}
	m.call.lineUp(m.wrote)
	return m.call.conflict(ctx, m.wrote, m.unlocked())
}

// denied is the error of a request that was refused for what it is.
func (m *commit) denied(ctx context.Context, res ddb.Result) error {
	if failed := m.reasons(res.Err); failed != nil {
		return failed
	}
	if len(m.parts) == 1 && len(m.sent) == 0 {
		return fail(m.parts[0].failure(res.Err))
	}
	return m.call.explain(ctx, m.cores(m.sent), res.Err)
}

// unlocked are the items that were read, and of which no lock is held.
func (m *commit) unlocked() (items []*entry) {
	for _, p := range m.parts {
		if p.bound() {
			items = append(items, p.entry)
		}
	}
	return items
}

// bound reports whether the request demands that the item is as it was read.
func (p *part) bound() bool {
	return p.known && !p.moment.assumed() && p.locker == nil && p.turn == nil
}

// expect looks for the request in what the process gets to see of an item that it
// writes: one that is evidence for it, or against it, is that for the whole.
func (m *commit) expect(p *part) {
	if !p.changed() {
		return // it keeps no trace
	}
	var base []byte
	if p.ending == nil && p.blind == nil { // else it demands the lock alone, or nothing of what was read
		base = p.core.Ring(p.entry.image)
	}
	m.seen = append(m.seen, p.core.Expect(m.id, p.raw, base))
}

// endSeen ends expect.
func (m *commit) endSeen() {
	for _, e := range m.seen {
		e.End()
	}
	m.seen = nil
}

// witnessed is what the process has seen of the request.
func (m *commit) witnessed() protocol.Verdict {
	verdict := protocol.Undecided
	for _, e := range m.seen {
		v, _ := e.Verdict()
		verdict = lockless.JudgeParts(verdict, v)
	}
	return verdict
}
