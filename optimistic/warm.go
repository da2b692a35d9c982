package optimistic

import (
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
type cache struct {
	core  *protocol.Core
	items *recent.Memory[cached]
}

type cached struct {
	item   ddb.Item
	proved bool
}

func newCache(core *protocol.Core, size int) cache { return cache{core, recent.New[cached](size)} }

// get returns an item that may be believed; nil if there is none.
func (w cache) get(key string) ddb.Item {
	if k := w.items.Get(key); k.proved {
		return k.item
	}
	return nil
}

// learn notes how a call went.
func (w cache) learn(key string, c cas.Trace) {
	w.items.Change(key, func(k cached) (cached, bool) {
		// A call that did not read has written what it believed, unrefused.
		mine := k.proved || c.Read == nil || w.same(c.Read, k.item)
		return cached{c.After, mine && c.Conflicts == 0 && !c.Waited}, c.After != nil
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
		alone := k.proved && typed.Version(w.core, after) == typed.Version(w.core, k.item)+1
		return cached{after, alone}, k.item != nil
	})
}
