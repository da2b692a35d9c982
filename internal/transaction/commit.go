package transaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// commit is a commit under way: one request, until it has a verdict.
type commit struct {
	call  *call
	parts []*part
	held  []*part // those whose locks it ends, in the order of items
	rows  []*Row  // what is no item of a repository, in the same order
	sent  []*Row  // those that are in the last request, behind the items
	id    protocol.WriteID
	wrote []*entry // items that others have written first
}

// What becomes of a request that has not committed, beside another run (errAgain)
// and an error for the user.
var (
	errBusy  = errors.New("others were at the items")                // to be read and sent again, after a sleep
	errForm  = errors.New("an item or a row wants another write")    // to be sent again, in another form
	errDoubt = errors.New("nobody knows whether it was applied yet") // to be asked for by releasing
)

// commit writes what a run has made of the items that it touched.
func (c *call) commit(ctx context.Context, touched []*entry, rows []*Row) error {
	m := &commit{call: c, rows: rows}
	changed, size := false, 0
	for _, e := range touched {
		if !e.known && e.blind == nil {
			continue // an operation that failed
		}
		p := &part{entry: e}
		m.parts = append(m.parts, p)
		changed = changed || e.changed()
		size += p.size()
	}
	for _, e := range c.held() {
		i := slices.IndexFunc(m.parts, func(p *part) bool { return p.entry == e })
		m.held = append(m.held, m.parts[i])
	}
	for _, r := range rows {
		size += r.Size
	}
	n := len(m.parts) + len(rows)
	switch {
	case len(rows) == 0 && !changed && len(m.held) == 0:
		return c.verify(ctx, touched)
	case n == 1 && len(m.held) == 1 && m.parts[0].blind == nil:
		return m.end(ctx, m.parts[0])
	case n > maxItems:
		return tooMany()
	case n > 1 && size > maxBytes:
		return fmt.Errorf("%w: the items of the transaction have about %d bytes; DynamoDB takes %d: nothing was written", repo.ErrTooLarge, size, maxBytes)
	}
	if err := m.checkRows(); err != nil {
		return err
	}
	for {
		res, err := m.send(ctx)
		switch {
		case errors.Is(err, errBusy):
			if c.tries++; c.tries >= c.Attempts {
				return m.exhausted(res)
			}
			if c.sleep(ctx); ctx.Err() != nil {
				return because(m.exhausted(res), ddb.CtxError(ctx))
			}
			if unlocked := m.unlocked(); len(unlocked) > 0 {
				if err := c.readAgain(ctx, unlocked); err != nil {
					return err
				}
				return errAgain
			}
		case errors.Is(err, errForm):
		case errors.Is(err, errDoubt):
			return m.settle(ctx, res)
		case errors.Is(err, errAgain) && len(m.wrote) > 0:
			return c.conflict(ctx, m.wrote, m.unlocked())
		default:
			return err
		}
	}
}

// unlocked are the items that were read, and of which no lock is held.
func (m *commit) unlocked() (items []*entry) {
	for _, p := range m.parts {
		if p.known && p.moment > 0 && p.locker == nil {
			items = append(items, p.entry)
		}
	}
	return items
}

// end commits a transaction of one item that is locked: as if it were alone.
func (m *commit) end(ctx context.Context, p *part) error {
	how := lock.End{As: lock.Release}
	switch {
	case p.removed():
		how.As = lock.Delete
	case p.changed():
		how.As = lock.Commit
		how.Change = func(w *protocol.Write) error { return p.fill(w, protocol.NewWriteID(), m.call.once) }
		how.Made = func(image ddb.Item) bool { return m.call.once.In(p.core, image) }
	}
	_, err := p.hold.End(ctx, how)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		_, _ = p.hold.End(ctx, lock.End{As: lock.Release}) // finds out, if anybody can
		switch p.hold.OutcomeOfUndecided() {
		case protocol.Committed:
			err = nil
		case protocol.Lost:
			err = lock.Unwritten(p.core, p.key, err)
		}
	}
	if err != nil {
		return fail(p.failure(err))
	}
	p.released(m.call)
	return nil
}

// send sends the transaction once, and says what came of it. The result is that of
// the request.
func (m *commit) send(ctx context.Context) (res ddb.Result, err error) {
	opt := ddb.Options{Conflicts: true, Holding: len(m.held) > 0}
	for _, p := range m.held {
		if err := p.hold.BeginLast(ctx); err != nil {
			return res, fail(p.failure(err))
		}
		defer p.hold.Done()
		if err := p.hold.Usable(); err != nil {
			return res, fail(p.failure(err))
		}
		p.ending = p.hold.Part()
		if d := p.hold.Timeout(); opt.Timeout == 0 || d < opt.Timeout {
			opt.Timeout = d
		}
	}
	m.id = protocol.NewWriteID()
	var writes []types.TransactWriteItem
	single := false
	for i, p := range m.parts {
		p.image, p.failed = nil, false
		w, err := p.write(m.id, m.call.once)
		if err != nil {
			return res, fail(p.failure(err))
		}
		writes = append(writes, w)
		if len(p.entry.image) == 0 && p.blind == nil {
			opt.OnItems = append(opt.OnItems, i)
		}
		single = p.blind != nil && p.blind.Single && !p.known
	}
	more, done, err := m.beginRows(ctx, &opt)
	if err != nil {
		return res, err
	}
	defer done()
	if writes = append(writes, more...); len(writes) == 0 {
		return res, nil // jobs that are queued already, and nothing else
	}
	if single && len(writes) == 1 { // it has no token
		opt.Once, opt.AwaitAnswer = true, true
	}
	core := m.cores(m.sent)[0]
	if len(writes) == 1 && writes[0].ConditionCheck == nil && writes[0].Put == nil {
		res = core.Alone(ctx, opt, writes[0])
	} else if client, ok := core.Client.(ddb.Transactor); ok {
		res = core.Transact(ctx, client, opt, writes...)
	} else {
		return res, fmt.Errorf("%w: the client has no TransactWriteItems: a transaction of several items needs it", repo.ErrConfig)
	}
	if err = m.judge(ctx, res); err == nil {
		m.call.Observe.Batch(ctx, telemetry.Transaction, len(writes))
		m.appliedRows()
	}
	for _, p := range m.held {
		switch {
		case err == nil:
			p.ending.Ended()
			p.released(m.call)
		case errors.Is(err, errDoubt):
			p.ending.InDoubt()
		}
	}
	return res, err
}

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
		verdicts = append(verdicts, p.core.JudgePart(p.judged(), m.id, p.image, res.Clean))
		if p.queue = p.ending != nil && p.ending.RefusedByQueue(p.image); p.queue {
			queue = true
			verdicts = append(verdicts, protocol.Lost) // and the request is refused for ever
		}
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
		e.refuted = e.moment == 0 && (e.blind == nil || e.blind.Check != nil)
		e.known, e.image, e.moment = true, p.image, m.call.tick()
		switch {
		case e.image[e.core.Attr.LockedBy] != nil:
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
	verdict := protocol.Undecided
	for _, p := range m.held {
		_, _ = p.hold.End(ctx, lock.End{As: lock.Release})
		verdict = protocol.JudgeParts(verdict, p.hold.OutcomeOfUndecided())
		p.released(m.call)
	}
	verdict = protocol.JudgeParts(verdict, m.settleRows(ctx))
	if verdict == protocol.Undecided && m.shown(ctx) {
		verdict = protocol.Committed
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
