package lock

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
)

// knows lets the process know how long trips and turns take.
func (p *process) knows() *process {
	p.HoldTimes.Change(p.Core.KeyText(raw), func(pace.Learned) (pace.Learned, bool) {
		return pace.Learned{Trip: time.Millisecond, Turn: time.Millisecond}, true
	})
	return p
}

// Whose enqueue has no answer sees beside it that it has the lock.
func TestAStalledEnqueueHasTheLock(t *testing.T) {
	p := open(t, Config{Fair: true}).knows()
	p.Nth("UpdateItem", 0, fault.HoldResponse)
	h := p.take(t)
	if l, _ := p.record(t); l.By != h.ID() || l.Held != h.Token() {
		t.Errorf("%s has token %d, the item shows %+v", h.ID(), h.Token(), l)
	}
	rig.Must(h.End(t.Context(), End{}))(t)
}

// Whose enqueue has no answer, and which stands in the queue, comes again under another
// entry: nobody stands there twice, nor has a place that may be another's.
func TestAStalledEnqueueComesAgain(t *testing.T) {
	for _, alike := range []bool{false, true} {
		p := open(t, Config{Fair: true})
		h := p.take(t)
		o := p.other(t).knows()
		var first string
		o.beforeEnqueue(t, fault.HoldResponse, func(entry string) {
			if first = entry; alike {
				p.change(t, func(w *protocol.Write) { w.Set("lockQueue", queueOf(stored.EntryOf(h.ID()), entry)) })
			}
		})
		q := o.enqueue(t.Context(), t, Request{})
		_, item := p.record(t)
		if waiting := p.Core.ParseQueue(item).Without(stored.EntryOf(h.ID())); len(waiting) != 1 || waiting[0].ID == first {
			t.Errorf("alike %v: it came as %q, and %q stand there", alike, first, waiting)
		}
		rig.Must(h.End(t.Context(), End{}))(t)
		rig.Is(t, <-q.err)
		rig.Must((<-q.got).End(t.Context(), End{}))(t)
	}
}

// A place that is far from its turn is not given up: the answer may come yet.
func TestALateEnqueueKeepsItsPlace(t *testing.T) {
	p := open(t, Config{Fair: true})
	q := &queued{acquiring: &acquiring{locker: p.Locker, id: "me", Waiter: Waiter{Core: p.Core}}, entry: "mine"}
	q.forecast.Turn, q.forecast.Trip = 10*time.Millisecond, 5*time.Millisecond
	for name, c := range map[string]struct {
		item ddb.Item
		want bool
	}{
		"it is not there":         {ddb.Item{"lockQueue": queueOf("head")}, false},
		"it has the lock":         {ddb.Item{"lockedBy": ddb.Text("me")}, true},
		"its turn comes":          {ddb.Item{"lockQueue": queueOf("next", "mine")}, true},
		"at the edge of the time": {ddb.Item{"lockQueue": queueOf("4444", "3333", "2222", "1111", "mine")}, false},
		"it was handed the lock":  {ddb.Item{"lockedBy": ddb.Text(stored.NextID("mine"))}, false}, // or another was
	} {
		rig.Equal(t, q.tells(c.item, 10*time.Millisecond), c.want, "%s: tells", name)
	}
}
