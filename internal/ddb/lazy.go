package ddb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lazy is a context that begins to watch for its end when somebody waits for that:
// most calls are over before anybody does, and a context of package context costs a
// timer, or a goroutine at the end of what it was merged of. From then on all is
// left to a context of that package, so that those below it cost what they always
// cost.
type lazy[E end] struct {
	context.Context // whose values it has
	end             E
	watched         atomic.Pointer[watched] // nil until somebody waits, or it is found that the end has come

	mu   sync.Mutex
	over bool // guarded by mu: it was cancelled
}

// end is how a lazy context ends.
type end interface {
	// near reports whether the end has come, or has begun to come, without waiting.
	near(parent context.Context) bool
	// watch makes the context that ends so.
	watch(parent context.Context) (context.Context, context.CancelFunc)
	// deadline is when it ends at the latest, if that is known.
	deadline(parent context.Context) (time.Time, bool)
}

// watched is the context in whose place a lazy one stood.
type watched struct {
	context.Context
	cancel context.CancelFunc
}

func newLazy[E end](parent context.Context, how E) (context.Context, context.CancelFunc) {
	l := &lazy[E]{Context: parent, end: how}
	return l, l.cancel
}

// watch leaves the end to a context of package context.
func (l *lazy[E]) watch() *watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.watched.Load(); w != nil {
		return w
	}
	w := &watched{}
	w.Context, w.cancel = l.end.watch(l.Context)
	if l.over {
		w.cancel()
	}
	l.watched.Store(w)
	return w
}

// look is the context in its place; nil while nobody waits and the end is far.
func (l *lazy[E]) look() *watched {
	if w := l.watched.Load(); w != nil {
		return w
	}
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if !over && !l.end.near(l.Context) {
		return nil
	}
	return l.watch()
}

func (l *lazy[E]) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if w := l.watched.Load(); w != nil {
		w.cancel()
	}
}

// Deadline implements [context.Context].
func (l *lazy[E]) Deadline() (time.Time, bool) {
	if w := l.watched.Load(); w != nil {
		return w.Deadline()
	}
	return l.end.deadline(l.Context)
}

// Done implements [context.Context].
func (l *lazy[E]) Done() <-chan struct{} { return l.watch().Done() }

// Err implements [context.Context].
func (l *lazy[E]) Err() error {
	if w := l.look(); w != nil {
		return w.Err()
	}
	return nil
}

// Value implements [context.Context].
func (l *lazy[E]) Value(key any) any {
	w := l.watched.Load()
	if w == nil && key == ownKey {
		if w = l.look(); w == nil {
			return nil // it has no end yet, and no cause of it
		}
	}
	if w != nil {
		return w.Value(key)
	}
	return l.Context.Value(key)
}

// ownKey is the key by which [context.Cause] of Go 1.25 asks for the context that knows
// the cause of an end, before it asks whether there is one: a lazy one has to answer for
// itself. Later ones look at Err first, and do not ask: it is nil.
var ownKey = func() any {
	var asked asker
	_ = context.Cause(&asked)
	return asked.key
}()

// asker notes for what it is asked.
type asker struct {
	context.Context
	key any
}

func (a *asker) Value(key any) any {
	a.key = key
	return nil
}

func (a *asker) Err() error { return nil }
