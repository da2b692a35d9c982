package lock

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// observation is the evidence of a clockless watcher: a hold that stood unchanged
// for its full lease is dead, whatever any other clock says.
type observation struct {
	seen    ddb.Item  // the attributes that identify the hold and its last beat
	since   time.Time // when the first answer that showed it arrived
	lease   time.Duration
	endless bool // it never ends by itself, however long it stands
}

// observe notes what an answer showed, and reports whether it was new. own is the
// lease to assume where the item names none.
func (w *observation) observe(image ddb.Item, l stored.Record, core *protocol.Core, own time.Duration, now time.Time) bool {
	seen := core.Heartbeat(image)
	if w.seen != nil && ddb.EqualItems(w.seen, seen) {
		return false
	}
	w.seen, w.since, w.lease, w.endless = seen, now, l.Lease, l.Endless()
	if l.ByHand() || w.lease == 0 {
		// It names no lease, or shows what the hold before it left there.
		w.lease = max(w.lease, own)
	}
	return true
}

// watchTime is the time by which a clockless watcher counts: a clock that may jump
// says nothing of for how long it has watched.
func (a *acquiring) watchTime() time.Time {
	if a.Core.Jumps {
		return time.Now()
	}
	return a.Clock()
}

// expired returns the hold that may be taken over; nil if there is none yet. Only
// the monotonic clock counts: it never runs ahead of real time, so a wall clock
// that jumps forward, or a suspended machine, can only delay a takeover.
func (w *observation) expired(now time.Time) ddb.Item {
	if w.seen == nil || w.endless || now.Sub(w.since) < w.lease {
		return nil
	}
	return w.seen
}
