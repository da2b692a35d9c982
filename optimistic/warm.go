package optimistic

import (
	"container/list"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
)

// warm keeps the items that were changed last, the least recently used going
// first. A nil warm keeps nothing.
//
// An item is offered only on evidence that this process is the one that
// changes it: a read has found it as we had left it, and no write of ours was
// refused since. To believe every item costs a third more requests, and twice
// the latency, where processes alternate.
type warm struct {
	core *ddb.Core
	size int

	mu    sync.Mutex
	byKey map[string]*list.Element // guarded by mu
	used  *list.List               // guarded by mu: of *kept, the latest first
}

type kept struct {
	key    string
	item   ddb.Item
	proved bool
}

func newWarm(core *ddb.Core, size int) *warm {
	if size == 0 {
		return nil
	}
	return &warm{core: core, size: size, byKey: map[string]*list.Element{}, used: list.New()}
}

// get returns an item that may be believed; nil if there is none.
func (w *warm) get(key string) ddb.Item {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.byKey[key]
	if e == nil {
		return nil
	}
	w.used.MoveToFront(e)
	if k := e.Value.(*kept); k.proved {
		return k.item
	}
	return nil
}

// learn notes how a call went.
func (w *warm) learn(key string, c guard.Course) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.byKey[key]
	if c.After == nil {
		if e != nil {
			w.used.Remove(e)
			delete(w.byKey, key)
		}
		return
	}
	if e == nil {
		e = w.used.PushFront(&kept{key: key})
		w.byKey[key] = e
	}
	w.used.MoveToFront(e)
	k := e.Value.(*kept)
	// A call that did not read has written what it believed, unrefused.
	k.proved = c.Conflicts == 0 && !c.Waited && (k.proved || c.Read == nil || w.same(c.Read, k.item))
	k.item = c.After
	for w.used.Len() > w.size {
		oldest := w.used.Back()
		w.used.Remove(oldest)
		delete(w.byKey, oldest.Value.(*kept).key)
	}
}

// same reports whether two images are of the same write of an item.
func (w *warm) same(a, b ddb.Item) bool {
	ring := w.core.Ring(a)
	return len(ring) > 0 && string(ring) == string(w.core.Ring(b))
}
