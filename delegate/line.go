package delegate

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// line is the callers of this process that want to change one item. One goroutine works
// for them as long as there are any.
type line struct {
	e    *engine
	key  repo.Key
	raw  ddb.Item
	text string
	base string // of the rows of mail
	place
	hands atomic.Int64 // the goroutine in which commands run; 0: none does

	waiting []*caller     // guarded by engine.mu
	inside  *batch        // guarded by engine.mu: at work
	arrived chan struct{} // somebody waits
}

// take makes a batch of those who wait; nil: nobody does.
func (l *line) take() *batch {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(c *caller) bool {
		if c.ctx.Err() == nil {
			return false
		}
		c.end <- verdict{err: ddb.CtxError(c.ctx)} // nothing of it is under way
		return true
	})
	n, size := 0, 0
	for _, c := range l.waiting {
		size += len(c.command) + len(c.args) + len(c.once)
		if n > 0 && (n == mostOrders || size > mostBatch || c.alone || l.waiting[0].alone) {
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	b := newBatch(slices.Clone(l.waiting[:n]))
	l.waiting = slices.Delete(l.waiting, 0, n)
	l.inside = b
	return b
}

// over ends a line in which nobody waits.
func (l *line) over() bool {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.inside = nil
	if len(l.waiting) > 0 {
		return false
	}
	delete(l.e.lines, l.text)
	l.e.slots.Change(l.text, func(place) (place, bool) { return l.place, l.slot != "" })
	return true
}

// again puts callers back into the line, first of all; alone: each by itself.
func (l *line) again(callers []*caller, alone bool) {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	for _, c := range callers {
		c.alone = c.alone || alone
	}
	l.waiting = append(slices.Clone(callers), l.waiting...)
	ddb.Signal(l.arrived)
}

// requeue puts the callers of a batch back into the line, as they were.
func (l *line) requeue(b *batch) {
	l.again(b.callers, false)
	b.over()
}

// work changes the item for those who wait, until nobody does.
func (l *line) work() {
	answered := 0
	for {
		// Callers who were just answered are about to come back: they get the chance to, for
		// who comes too late for a batch waits as long again.
		all := l.callers() + answered
		for n := 0; n < comingBack && l.callers() < all; n++ {
			runtime.Gosched()
		}
		b := l.take()
		if b == nil {
			if l.over() {
				return
			}
			continue
		}
		answered = len(b.callers)
		if ended := goroutine.Apart(func() { l.change(b) }); ended != nil {
			l.abandoned(ended)
		}
	}
}

// abandoned gives those their verdict at whose change the client, or another function of the
// program, has ended the goroutine: nobody knows.
func (l *line) abandoned(why error) {
	l.e.mu.Lock()
	b := l.inside
	begun := slices.DeleteFunc(slices.Clone(b.callers), func(c *caller) bool { return slices.Contains(l.waiting, c) })
	l.e.mu.Unlock()
	l.slot = "" // whatever lies there is nobody's
	b.over()
	for _, c := range begun {
		select {
		case c.end <- verdict{err: lock.UnknownOutcome(l.e.core.Table, l.key, why)}:
		default: // it has one
		}
	}
}

// comingBack is how often others may run before a batch is made of those who wait.
const comingBack = 16

// callers are how many wait.
func (l *line) callers() int {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	return len(l.waiting)
}

// change sees a batch to its verdict: alone, or, where others want the item too, with
// them.
func (l *line) change(b *batch) {
	var image ddb.Item
	if !l.e.wanted.Recent(l.text) {
		decided := false
		if image, decided = l.alone(b); decided {
			return
		}
		l.e.wanted.Note(l.text)
	}
	l.shared(b, image)
}

// alone changes the item as package optimistic does, once: a failed condition, or a
// leader, says that others want it too. It then returns the item as it is.
func (l *line) alone(b *batch) (image ddb.Item, decided bool) {
	r := &round{l: l, own: b}
	_, err := r.run(b.ctx)
	if r.elsewhere(err) {
		return r.foreign, false
	}
	l.conclude(b, err)
	return nil, true
}

// shared changes the item where others want it too: it puts the batch into the mail of who
// leads, or leads itself.
func (l *line) shared(b *batch, image ddb.Item) {
	for b != nil {
		if d := l.leads(); image == nil && d.Lead != "" && d.Lead != l.deaf && !b.forced {
			decided := false
			if decided, image = l.post(b, d); decided {
				return
			}
			l.at = time.Time{}
			continue
		}
		if image == nil {
			var err error
			if image, err = l.read(b.ctx); err != nil {
				l.giveUp(b, err)
				return
			}
		}
		d, err := delegation.Of(l.e.core.Table, image)
		if err != nil {
			l.giveUp(b, err)
			return
		}
		l.sees(d)
		if d.Lead != "" && d.Lead != l.deaf && !b.forced {
			decided := false
			if decided, image = l.post(b, d); decided {
				return
			}
			continue
		}
		b, image = l.lead(b, image)
	}
}

// read reads the item.
func (l *line) read(ctx context.Context) (ddb.Item, error) {
	return l.readAs(ctx, ddb.Options{Holding: true})
}

func (l *line) readAs(ctx context.Context, how ddb.Options) (ddb.Item, error) {
	image, err := l.e.core.GetFor(ctx, l.raw, how)
	if err == nil && l.e.core.Hidden(image) {
		err = lock.NotFound(l.key, l.e.core.Name)
	}
	return image, err
}
