package transaction

import (
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
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
