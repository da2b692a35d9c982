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
	seen  []*protocol.Evidence // of the last request, in what the process gets to see of its items
	wrote []*entry             // items that others have written first
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
	defer m.endSeen()
	for {
		res, err := m.send(ctx)
		switch {
		case errors.Is(err, errBusy):
			waits := c.lineUp(m.conflicting(res))
			tries, last := c.refused()
			if last {
				return m.exhausted(res)
			}
			if waits {
				return errAgain
			}
			if len(m.held) == 0 || tries > atOnce { // else others wait for what is held
				c.sleep(ctx)
			}
			if ctx.Err() != nil {
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
			c.lineUp(m.wrote)
			return c.conflict(ctx, m.wrote, m.unlocked())
		default:
			return err
		}
	}
}

// conflicting are the items at which others were when the request came.
func (m *commit) conflicting(res ddb.Result) (items []*entry) {
	for i, err := range ddb.Reasons(res.Err) {
		if err != nil && i < len(m.parts) {
			items = append(items, m.parts[i].entry)
		}
	}
	return items
}

// unlocked are the items that were read, and of which no lock is held.
func (m *commit) unlocked() (items []*entry) {
	for _, p := range m.parts {
		if p.known && !p.moment.assumed() && p.locker == nil {
			items = append(items, p.entry)
		}
	}
	return items
}

// end commits a transaction of one item that is locked: as if it were alone.
func (m *commit) end(ctx context.Context, p *part) error {
	how := lock.End{As: lock.Release, KeepLocal: p.turn.KeepLocalInTransaction()}
	switch {
	case p.removed():
		how.As = lock.Delete
	case p.changed():
		m.id = protocol.NewWriteID()
		m.seen = append(m.seen, p.core.Expect(m.id, nil))
		defer m.endSeen()
		how.As = lock.Commit
		how.Change = func(w *protocol.Write) error { return p.fill(w, m.id, m.call.once) }
		how.Made = func(image ddb.Item) bool { return m.call.once.In(p.core, image) }
	}
	next, err := p.turn.Lock.End(ctx, how)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		h := p.turn.Lock
		p.release(ctx, m.call) // finds out, if anybody can
		switch protocol.JudgeParts(h.OutcomeOfUndecided(), m.witnessed()) {
		case protocol.Committed:
			return nil
		case protocol.Lost:
			err = lock.Unwritten(p.core, p.key, err)
		}
	}
	if err != nil {
		return fail(p.failure(err))
	}
	p.passOn(m.call, next)
	return nil
}

// send sends the transaction once, and says what came of it. The result is that of
// the request.
func (m *commit) send(ctx context.Context) (res ddb.Result, err error) {
	opt := ddb.Options{Conflicts: true, Holding: len(m.held) > 0, Decide: len(m.held)+len(m.rows) == 0} // what is held is released, which tells
	for _, p := range m.held {
		h := p.turn.Lock
		if err := h.BeginLast(ctx); err != nil {
			return res, fail(p.failure(err))
		}
		defer h.Done()
		if err := h.Usable(); err != nil {
			return res, fail(p.failure(err))
		}
		p.ending = h.Part(p.turn.KeepLocalInTransaction() && !p.removed() && p.blind == nil)
		if d := h.Timeout(); opt.Timeout == 0 || d < opt.Timeout {
			opt.Timeout = d
		}
	}
	m.id = protocol.NewWriteID()
	m.endSeen()
	var writes []types.TransactWriteItem
	single := false
	for i, p := range m.parts {
		p.image, p.failed = nil, false
		w, err := p.write(m.id, m.call.once)
		if err != nil {
			return res, fail(p.failure(err))
		}
		writes = append(writes, w)
		m.expect(p)
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
			p.passOn(m.call, p.ending.Ended(ctx))
		case errors.Is(err, errDoubt):
			p.ending.InDoubt(p.removed())
		}
	}
	return res, err
}
