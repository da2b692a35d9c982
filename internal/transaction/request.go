package transaction

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// request is what a commit sends, as often as it takes.
type request struct {
	writes  []types.TransactWriteItem
	opt     ddb.Options
	alone   bool // as the plain write of its one item, which has no token
	doubted bool // an answer did not tell whether it was applied
}

// send sends the request once, and says what is to be done then. The result is that of the
// request. An error: nothing was sent now.
func (m *commit) send(ctx context.Context) (res ddb.Result, step lockless.Step, err error) {
	opt := ddb.Options{Conflicts: true, Decide: len(m.held)+len(m.rows) == 0} // what is held is released, which tells
	done, err := m.begin(ctx, &opt)
	defer done()
	if err != nil {
		return res, step, err
	}
	if m.out == nil {
		if err := m.make(); err != nil {
			return res, step, err
		}
	}
	if len(m.out.writes) == 0 {
		return res, lockless.Conclude, nil // jobs that are queued already, and nothing else
	}
	if res, err = m.transmit(ctx, opt); err != nil {
		return res, step, err
	}
	step = m.judge(ctx, res)
	m.ended(ctx, step)
	return res, step, nil
}

// begin begins the ends of all that is held: nothing else is sent for it until done.
func (m *commit) begin(ctx context.Context, opt *ddb.Options) (done func(), err error) {
	var begun []interface{ Done() }
	done = func() {
		for _, b := range begun {
			b.Done()
		}
	}
	opt.Holding = len(m.held) > 0
	for _, p := range m.held {
		h := p.turn.Lock
		if err := h.BeginLast(ctx); err != nil {
			return done, fail(p.failure(err))
		}
		begun = append(begun, h)
		if err := h.Usable(); err != nil && p.inQueue() {
			return done, m.call.retake(ctx, []*entry{p.entry})
		} else if err != nil {
			return done, fail(p.failure(err))
		}
		opt.Shorten(h.Timeout())
	}
	for _, r := range m.rows {
		e, ok := r.Ending()
		if !ok {
			continue
		}
		if err := e.Begin(ctx); err != nil {
			return done, fail(rowFailure(r, err))
		}
		begun = append(begun, e)
		opt.Holding = true
		opt.Shorten(e.Timeout())
	}
	return done, nil
}

// make makes the request. What is held is begun to be ended.
func (m *commit) make() error {
	m.endSeen()
	m.id, m.sent = protocol.NewWriteID(), nil
	out := &request{}
	single, size := false, 0
	for i, p := range m.parts {
		p.beginEnding()
		w, err := p.write(m.id, m.call.once)
		if err != nil {
			return fail(p.failure(err))
		}
		out.writes = append(out.writes, w)
		size += p.size(w)
		m.expect(p)
		if len(p.entry.image) == 0 && p.blind == nil {
			out.opt.OnItems = append(out.opt.OnItems, i)
		}
		single = p.blind != nil && p.blind.Single && !p.known
	}
	for _, r := range m.rows {
		part, some, err := r.Write()
		if err != nil {
			return fail(rowFailure(r, err))
		}
		if some {
			m.sent, out.writes = append(m.sent, r), append(out.writes, part)
			size += r.Size
		}
	}
	if len(out.writes) > 1 && size > maxBytes {
		return tooLarge(size)
	}
	out.choose(single)
	m.out, m.mine = out, m.call.sends(m.id, m.sent)
	return nil
}

// beginEnding begins the end of the item's lock, if it is held.
func (p *part) beginEnding() {
	p.ending = nil
	if p.turn != nil {
		p.ending = p.turn.Lock.Part(p.turn.KeepLocalInTransaction() && !p.removed() && p.blind == nil)
	}
}

// choose decides whether the request is sent as a plain write, and how often: a single
// one must not be repeated by itself.
func (out *request) choose(single bool) {
	out.alone = len(out.writes) == 1 && out.writes[0].ConditionCheck == nil && out.writes[0].Put == nil
	out.opt.Once, out.opt.AwaitAnswer = single && out.alone, single && out.alone
	out.opt.Sending = ddb.NewSending("", 0)
	if out.alone {
		out.opt.Sending = &ddb.Sending{}
	}
}

// transmit sends the request.
func (m *commit) transmit(ctx context.Context, opt ddb.Options) (res ddb.Result, err error) {
	for _, p := range m.parts {
		p.image, p.failed, p.again = nil, false, false
	}
	out := m.out
	opt.OnItems, opt.Once, opt.AwaitAnswer, opt.Sending = out.opt.OnItems, out.opt.Once, out.opt.AwaitAnswer, out.opt.Sending
	core := m.cores(m.sent)[0]
	if out.alone {
		return core.Alone(ctx, opt, out.writes[0]), nil
	}
	client, ok := core.Client.(ddb.Transactor)
	if !ok {
		return res, noTransactions()
	}
	return core.Transact(ctx, client, opt, out.writes...), nil
}

// ended notes what has become of what is held.
func (m *commit) ended(ctx context.Context, step lockless.Step) {
	if step == lockless.Conclude {
		m.call.Observe.Batch(ctx, telemetry.Transaction, len(m.out.writes))
		m.mine.applied()
	}
	for _, p := range m.held {
		switch step {
		case lockless.Conclude:
			p.passOn(m.call, p.ending.Ended(ctx))
		case lockless.FindOut:
			p.ending.InDoubt(p.removed(), m.trace(ctx, p))
		}
	}
}
