// Package recent is a bounded memory of what was used last. It is safe for
// concurrent use.
package recent

import (
	"container/list"
	"sync"
)

// Memory keeps values by key, at most size of them; the least recently used
// goes first. A nil memory keeps nothing.
type Memory[V any] struct {
	size int

	mu    sync.Mutex
	byKey map[string]*list.Element // guarded by mu
	used  *list.List               // guarded by mu: of *entry, the latest first
}

type entry[V any] struct {
	key   string
	value V
}

// New makes a memory of a size; nil for 0.
func New[V any](size int) *Memory[V] {
	if size == 0 {
		return nil
	}
	return &Memory[V]{size: size, byKey: map[string]*list.Element{}, used: list.New()}
}

// Get returns the value of a key; the zero value where there is none.
func (m *Memory[V]) Get(key string) (v V) {
	if m == nil {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byKey[key]
	if e == nil {
		return v
	}
	m.used.MoveToFront(e)
	return e.Value.(*entry[V]).value
}

// Change replaces the value of a key, the zero value where there is none, by
// what change makes of it; false forgets the key.
func (m *Memory[V]) Change(key string, change func(V) (V, bool)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byKey[key]
	var v V
	if e != nil {
		v = e.Value.(*entry[V]).value
	}
	v, keep := change(v)
	switch {
	case keep && e != nil:
		e.Value.(*entry[V]).value = v
		m.used.MoveToFront(e)
	case keep:
		m.byKey[key] = m.used.PushFront(&entry[V]{key, v})
		if m.used.Len() > m.size {
			m.forget(m.used.Back())
		}
	case e != nil:
		m.forget(e)
	}
}

// forget drops an entry. mu is held.
func (m *Memory[V]) forget(e *list.Element) {
	m.used.Remove(e)
	delete(m.byKey, e.Value.(*entry[V]).key)
}

// Len is how many keys there are.
func (m *Memory[V]) Len() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used.Len()
}
