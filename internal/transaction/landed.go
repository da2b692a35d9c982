package transaction

import (
	"context"
	"errors"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
)

// sent is what a call remembers of a request. Another one takes its place where it was not
// applied; but if nothing has moved that it demands, a copy of it may be, later. An item
// that shows it then is evidence that the call has done what it is for.
type sent struct {
	id   protocol.WriteID
	rows []*rows.Row
	once sync.Once
}

// applied tells the rows that the request was applied.
func (s *sent) applied() {
	s.once.Do(func() {
		for _, r := range s.rows {
			if r.Action != nil {
				r.Action.Applied()
			}
		}
	})
}

// sends notes that a request is going to be sent.
func (c *call) sends(id protocol.WriteID, rows []*rows.Row) *sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sent{id: id, rows: rows}
	c.requests = append(c.requests, s)
	return s
}

// landed is the request of the call that an item shows to be applied; nil: none.
func (c *call) landed(core *protocol.Core, image ddb.Item) *sent {
	ring := core.Ring(image)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.requests {
		if protocol.RingVerdict(s.id, nil, ring) == protocol.Committed {
			return s
		}
	}
	return nil
}

// landed is the verdict on the commit by what an item shows of it, or of a request before.
func (m *commit) landed(core *protocol.Core, image ddb.Item) protocol.Verdict {
	s := m.call.landed(core, image)
	if s == nil {
		return protocol.Undecided
	}
	m.mine = s
	return protocol.Committed
}

// perhaps is a request that may be applied yet, with what an image of each item can prove of
// it: what is read later is no more what it demands.
type perhaps struct {
	*commit
	judged map[*entry]lockless.Part
}

func (m *commit) perhaps() *perhaps {
	d := &perhaps{m, map[*entry]lockless.Part{}}
	for _, p := range m.parts {
		d.judged[p.entry] = p.judged()
	}
	return d
}

var errLanded = errors.New("a copy of a request of the transaction was applied")

// overtake finds out what became of the request that may be applied, now that an item is
// locked, or gone, which it demands as it was: from now on it is not. The closure must not run
// beside it: what it finds, or returns, may be the request's own work. errLanded: it is applied.
//
// The item tells if the request writes it. Else the same is sent again: who has its token has
// the answer.
func (c *call) overtake(ctx context.Context, e *entry, gone error) error {
	d := c.perhaps
	if d == nil {
		return nil
	}
	c.perhaps = nil
	if gone == nil {
		switch lockless.JudgeLooks(lockless.LookAt(e.core, d.judged[e], d.id, e.image)) {
		case protocol.Committed:
			d.mine.applied()
			return errLanded
		case protocol.Lost:
			return nil
		}
	}
	for last := false; ; {
		res, step, err := d.send(ctx)
		switch {
		case err == nil && step == lockless.Conclude:
			return errLanded
		case err == nil && step == lockless.SendOther:
			return nil
		case err == nil && step == lockless.SendSame && !last && ctx.Err() == nil:
			_, last = d.pause(ctx, res)
			continue
		}
		return settled(d.settle(ctx, res, err))
	}
}

// settled is what overtake says where the request was in doubt, and settle has told.
func settled(err error) error {
	switch {
	case err == nil:
		return errLanded
	case errors.Is(err, errRefused):
		return nil
	}
	return err
}
