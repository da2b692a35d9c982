package optimistic

import (
	"time"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/typed"
)

// cache keeps the items that were changed last. An item is offered only on
// evidence that this process is the one that changes it: a read has found it
// as we had left it, or a write of ours was not refused. To believe every item
// costs a third more requests, and twice the latency, where processes
// alternate.
//
// Nor is it offered when it has lain for longer than nobody but us has written it before:
// others may have written more often since than its ring remembers, and a write that
// begins from it would be refused by an item that does not tell any more that no copy of
// it was applied.
type cache struct {
	core  *protocol.Core
	items *recent.Memory[cached]
}

type cached struct {
	item   ddb.Item
	proved bool
	shared bool          // others were seen to write it
	left   time.Time     // when we had written it
	alone  time.Duration // the longest time since then in which nobody else has
}

// For how long an item that has proved true is believed at least: in that time others
// hardly write more often than a ring has places. The shorter one is of an item that
// others were seen to write.
const (
	leastBelieved       = 100 * time.Millisecond
	leastBelievedShared = 25 * time.Millisecond
)

// believed reports whether the item may be believed now.
func (k cached) believed(now time.Time) bool {
	least := leastBelieved
	if k.shared {
		least = leastBelievedShared
	}
	return k.proved && now.Sub(k.left) <= max(k.alone, least)
}

// followed is what is kept after a write of ours, whose item is nil where it is not known:
// own says that nobody else has written since the one before, others that somebody has.
func (k cached) followed(after ddb.Item, own, others bool, now time.Time) cached {
	next := cached{item: after, proved: own, shared: k.shared || others, left: now}
	if own && k.item != nil {
		next.alone = max(k.alone, now.Sub(k.left))
	}
	return next
}

func newCache(core *protocol.Core, size int) cache { return cache{core, recent.New[cached](size)} }

// get returns an item that may be believed; nil if there is none.
func (w cache) get(key string) ddb.Item {
	if k := w.items.Get(key); k.believed(time.Now()) {
		return k.item
	}
	return nil
}

// learn notes how a call went.
func (w cache) learn(key string, c cas.Trace) {
	w.items.Change(key, func(k cached) (cached, bool) {
		// A call that did not read has written what it believed, unrefused.
		asLeft := c.Read == nil || w.same(c.Read, k.item)
		refused := c.Conflicts > 0 || c.Waited
		next := k.followed(c.After, asLeft && !refused, refused || k.item != nil && !asLeft, time.Now())
		return next, c.After != nil || next.shared
	})
}

// same reports whether two images are of the same write of an item.
func (w cache) same(a, b ddb.Item) bool {
	ring := w.core.Ring(a)
	return len(ring) > 0 && string(ring) == string(w.core.Ring(b)) && typed.Version(w.core, a) == typed.Version(w.core, b)
}

// follow replaces an item that is kept by what a write of this process, that has
// not read it, has left. It stays proved if nobody has written in between.
func (w cache) follow(key string, after ddb.Item) {
	w.items.Change(key, func(k cached) (cached, bool) {
		if k.item == nil {
			return k, k.shared
		}
		alone := k.proved && typed.Version(w.core, after) == typed.Version(w.core, k.item)+1
		return k.followed(after, alone, !alone, time.Now()), true
	})
}
