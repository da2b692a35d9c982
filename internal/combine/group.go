package combine

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Bounds of a group: so many callers, drawn within so long. They bound how long
// the first one waits for the last, and what other processes wait for all.
const (
	maxParts  = 256
	maxGather = 100 * time.Millisecond
)

// Group runs the changes of its parts as one. It is used by one goroutine.
type Group struct {
	table *typed.Table
	draw  func() *Participant // the next caller who waits; nil: there is none
	parts []*run
	fresh bool  // there is no item yet
	count int64 // changes that the write will carry
	kind  string
	told  telemetry.Call // of all parts

	ctx    context.Context
	cancel context.CancelCauseFunc
	live   atomic.Int64 // parts whose callers have not left
}

// run is a part and what came of its change when it ran last.
type run struct {
	*Participant
	answer
	asked int  // how often its change was to run
	alone bool // it must run again, alone
}

// NewGroup starts a group with its first participant. draw takes along the next caller
// who waits, nil where there is none; a nil draw takes nobody along.
func NewGroup(table *typed.Table, kind string, first *Participant, draw func() *Participant) *Group {
	b := &Group{table: table, kind: kind, draw: draw}
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(first.ctx))
	b.ctx, b.told = table.Core.Observe.Shared(b.ctx, kind, "Combine", nil)
	b.live.Store(1)
	b.add(first)
	return b
}

// Context governs the group: it has the first caller's values, and ends when
// every caller's context has ended.
func (b *Group) Context() context.Context { return b.ctx }

// add takes p in, which is counted in live already.
func (b *Group) add(p *Participant) {
	left := func(ctx context.Context) bool { return b.without(context.Cause(ctx)) }
	p.left.Store(&left)
	if p.ctx.Err() != nil {
		p.tell() // its caller may have looked for us before
	}
	b.parts = append(b.parts, &run{Participant: p})
}

// within counts one more part in live; false if all have left: whoever came to
// such a group would end with it.
func (b *Group) within() bool {
	for {
		n := b.live.Load()
		if n == 0 || b.live.CompareAndSwap(n, n+1) {
			return n > 0
		}
	}
}

// without counts one part less; true if it was the last: the group ends.
func (b *Group) without(cause error) bool {
	if b.live.Add(-1) > 0 {
		return false
	}
	b.cancel(cause)
	return true
}

// Begin says, before each Edit, whether there is an item.
func (b *Group) Begin(fresh bool) { b.fresh = fresh }

// Edit is the edit of all parts, those who are drawn while it runs included.
// It is made of encodings: a caller may have been told its verdict before the
// last change has run, and what its change has returned is then its own again.
func (b *Group) Edit(ctx context.Context, from typed.Snapshot) (typed.Edit, error) {
	b.count = 0
	began := time.Now()
	all := typed.NewTotal(b.table, from)
	for i := 0; ; i++ {
		if i == len(b.parts) && !b.more(ctx, began) {
			break
		}
		start, err := all.Next()
		if err != nil {
			return typed.Edit{}, err
		}
		m := b.parts[i]
		m.asked++
		m.answer = m.ask(ctx, ask{table: b.table, from: start, fresh: b.fresh && b.count == 0})
		m.alone = m.ran && errors.Is(m.err, repo.Remove)
		if m.changed {
			all.Add(m.edit.diff, m.edit.after, m.edit.version)
			b.count++
		}
	}
	switch {
	case b.live.Load() == 0:
		<-b.ctx.Done() // who left last is about to end it
		return typed.Edit{}, ddb.CtxError(b.ctx)
	case len(b.parts) == 1 && b.parts[0].alone:
		return typed.Edit{Remove: true}, nil
	case len(b.parts) == 1 && b.parts[0].err != nil:
		return typed.Edit{}, b.parts[0].err // the guard knows best whether what it saw was true
	}
	if b.fresh && b.count == 0 {
		return typed.Edit{}, errNothing // nobody wants the new item
	}
	// To the guard it is one change; Count tells how many it stands for.
	return all.Edit(), nil
}

// errNothing ends a group that would make an item without a change.
var errNothing = errors.New("nothing to write")

// Count is how many changes the write carries; 0: it needs no write.
func (b *Group) Count() int64 { return b.count }

// Made reports whether an item remembers the ids of all changes that the write
// carries: then each of them was made, by this write or by another call.
func (b *Group) Made(ctx context.Context, item ddb.Item) bool {
	for _, m := range b.parts {
		if m.changed && !m.Once.Shows(ctx, b.table.Core, item) {
			return false
		}
	}
	return b.count > 0
}

// more takes the next caller along.
func (b *Group) more(ctx context.Context, began time.Time) bool {
	if b.draw == nil || len(b.parts) >= maxParts || time.Since(began) > maxGather || ctx.Err() != nil || b.parts[0].alone || !b.within() {
		return false
	}
	p := b.draw()
	if p == nil {
		// Callers who were told of the write before this one are about to come
		// back: they get the chance to, once they can run.
		runtime.Gosched()
		p = b.draw()
	}
	if p == nil {
		b.without(context.Canceled)
		return false
	}
	b.add(p)
	return true
}

// Conclude gives the parts their verdicts after the group ended with err. Those
// that it returns must run again, each alone.
func (b *Group) Conclude(err error) (again []*Participant) {
	defer b.cancel(nil)
	if errors.Is(err, errNothing) {
		err = nil
	}
	b.tell(err)
	over := b.ctx.Err() != nil // all have left
	for _, m := range b.parts {
		m.left.Store(nil)
		switch {
		case !m.ran && err == nil:
			m.tellEnd(nil, ddb.CtxError(m.ctx)) // its caller has left
		case len(b.parts) == 1 && (err != nil || m.alone), !m.ran, err != nil && m.changed && affectsAll(err) && !b.hasAttempts(m, err), errors.Is(err, lock.ErrContended):
			reason := err
			if over {
				reason = m.own(err)
			}
			m.tellEnd(nil, reason)
		case m.alone, err != nil:
			// It wants to be alone, saw what never was, may not be the one for whom the
			// write failed, or has joined later than those whose attempts are used up.
			m.unwritten.Store(true)
			again = append(again, m.Participant)
		default:
			m.tellEnd(m.item, m.err)
		}
	}
	return again
}

// hasAttempts reports whether a part may try again where others wrote first in each attempt
// of the group: it has had fewer than the one that began it.
func (b *Group) hasAttempts(m *run, err error) bool {
	return errors.Is(err, repo.ErrConflict) && m.asked < b.parts[0].asked && b.live.Load() > 0
}

// tell says which changes the group has written. It does so before their callers go on.
func (b *Group) tell(err error) {
	if err == nil && b.count > 0 {
		b.table.Core.Observe.Batch(b.ctx, b.kind, int(b.count))
		b.told.Changes(int(b.count))
		for _, m := range b.parts {
			if m.changed {
				b.told.Link(m.ctx)
			}
		}
	}
	b.told.End(&err)
}

func (m *run) tellEnd(item any, err error) { m.end <- result{item, err} }

// affectsAll reports whether an error has nothing to do with what was written: it
// is every part's. Of a service that cannot be reached, or that throttles, each
// part would only learn the same once more, one after the other.
func affectsAll(err error) bool {
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		return true // it may have been applied: nothing of it may run again
	}
	for _, e := range []error{repo.ErrTooLarge, repo.ErrSchema, repo.ErrFixed, repo.ErrStale, repo.ErrDenied, repo.ErrNotUnique} {
		if errors.Is(err, e) {
			return false // policies can be about attributes, too
		}
	}
	var api smithy.APIError
	return !errors.As(err, &api) || api.ErrorCode() != "ItemCollectionSizeLimitExceededException"
}
