package transaction

import (
	"context"
	"errors"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// commit is a commit under way: one request, until it has a verdict.
type commit struct {
	call   *call
	parts  []*part
	held   []*part     // those whose locks it ends, in the order of items
	rows   []*rows.Row // what is no item of a repository, in the same order
	sent   []*rows.Row // those that are in the request, behind the items
	out    *request    // nil: it is to be made
	mine   *sent       // what the call remembers of it, or of another one that is found applied
	id     protocol.WriteID
	claims []*claim             // those of the rows that are claims
	seen   []*protocol.Evidence // of the request, in what the process gets to see of its items
	wrote  []*entry             // items that others have written first
}

// errForm says of a request that has not committed, and never will, that an item or a row
// wants another write: the same run is sent in another form.
var errForm = errors.New("an item or a row wants another write")

// commit writes what a run has made of the items that it touched.
func (c *call) commit(ctx context.Context, touched []*entry, rows []*rows.Row) error {
	m, changed := c.parts(touched, rows)
	if err := m.makeRoom(ctx); err != nil {
		return err
	}
	if err := m.addClaims(); err != nil {
		return err
	}
	n := len(m.parts) + len(m.rows)
	switch {
	case len(m.rows) == 0 && !changed && len(m.held) == 0:
		return c.verify(ctx, touched)
	case n == 1 && len(m.held) == 1 && m.parts[0].blind == nil:
		return m.end(ctx, m.parts[0])
	}
	if n > maxItems {
		return tooMany()
	}
	if err := m.checkRows(); err != nil {
		return err
	}
	defer m.endSeen()
	for {
		if err := m.deliver(ctx); !errors.Is(err, errForm) {
			return err
		}
		m.out = nil
		if err := m.resolveClaims(ctx); err != nil {
			return err
		}
	}
}

// parts are those of a commit; changed says that it writes any of them.
func (c *call) parts(touched []*entry, rows []*rows.Row) (m *commit, changed bool) {
	m = &commit{call: c, rows: rows}
	for _, e := range touched {
		if !e.known && e.blind == nil {
			continue // an operation that failed
		}
		m.parts = append(m.parts, &part{entry: e})
		changed = changed || e.changed()
	}
	for _, e := range c.held() {
		i := slices.IndexFunc(m.parts, func(p *part) bool { return p.entry == e })
		m.held = append(m.held, m.parts[i])
	}
	return m, changed
}

// deliver sends a request until it is decided, and the same one each time: what an answer
// does not prove never to be applied could be applied beside another one.
func (m *commit) deliver(ctx context.Context) error {
	for {
		res, step, err := m.send(ctx)
		switch {
		case err != nil && m.out != nil && m.out.doubted:
			return m.settle(ctx, res, err)
		case err != nil:
			return err
		case step == lockless.SendSame:
			m.out.doubted = true
			step, err = m.among(ctx, res)
		case step == lockless.SendOther:
			err = m.other(ctx, res)
		case step == lockless.FindOut && m.refusedByClaims(res):
			step, err = m.bar(ctx)
		}
		switch step {
		case lockless.SendSame:
		case lockless.Conclude:
			return nil
		case lockless.SendOther:
			return err
		case lockless.Fail:
			return m.denied(ctx, res)
		default:
			if err = m.settle(ctx, res, err); errors.Is(err, errRefused) {
				err = m.refused(ctx, res, err)
			}
			return err
		}
	}
}

// forNow reports whether a write was refused for the moment: of a copy of it that says
// nothing, nor does the end of a context, which may have come in the sleep behind that.
func forNow(ctx context.Context, err error) bool {
	return ddb.Conflicted(err) || ddb.Throttled(err) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// end commits a transaction of one item that is locked: as if it were alone.
func (m *commit) end(ctx context.Context, p *part) error {
	how := lock.End{As: lock.Release, KeepLocal: p.turn.KeepLocalInTransaction()}
	switch {
	case p.removed():
		how.As = lock.Delete
	case p.changed():
		m.id = protocol.NewWriteID()
		m.seen = append(m.seen, p.core.Expect(m.id, nil, nil))
		defer m.endSeen()
		how.As = lock.Commit
		how.Change = func(w *protocol.Write) error { return p.fill(w, m.id, m.call.once) }
		how.Trace = m.trace(ctx, p)
	}
	h := p.turn.Lock
	next, err := h.End(ctx, how)
	busy := how.As != lock.Release && forNow(ctx, err)
	switch {
	case busy && h.BeginLast(ctx) == nil:
		h.Part(false).InDoubt(p.removed(), m.trace(ctx, p))
		h.Done()
	case err == nil:
		p.passOn(m.call, next)
		return nil
	case !errors.Is(err, repo.ErrOutcomeUnknown):
		if p.inQueue() && (errors.Is(err, repo.ErrLockLost) || errors.Is(err, repo.ErrLockExpired)) {
			return m.call.retake(ctx, []*entry{p.entry})
		}
		return fail(p.failure(err))
	}
	_ = p.release(ctx, m.call) // finds out, if anybody can
	switch verdict := lockless.JudgeParts(h.OutcomeOfUndecided(), m.witnessed()); {
	case verdict == protocol.Committed:
		return nil
	case verdict == protocol.Lost:
		err = lock.Unwritten(p.core.Table, p.key, err)
	case busy:
		err = lock.UnknownOutcome(p.core.Table, p.key, err)
	}
	return fail(p.failure(err))
}
