package ticket

import (
	"time"

	"github.com/dynahold/dynahold/internal/protocol"
)

// sign adds to an entry who makes it, and when. Without Config.Owner nothing is
// added: every request on the queue bills what entries say.
func (q *Queue) sign(w *protocol.Write, id string, now time.Time) {
	if q.cfg.Owner != "" {
		w.Set(attrOwner+id, protocol.Sign(now, q.cfg.Owner))
	}
}

// unsign takes that away with the own entry.
func (q *Queue) unsign(w *protocol.Write, id string) {
	if q.cfg.Owner != "" {
		w.Remove(attrOwner + id)
	}
}
