package combine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// settle is how long a caller whose context ended in the middle of a write
// waits for its verdict: a little longer than the write itself takes to settle.
const settle = 4 * time.Second

// Participant is one caller's part in a group.
type Participant struct {
	Create bool        // the item may be missing
	Once   *typed.Once // the id under which its change is made once; nil: none

	ctx    context.Context
	began  time.Time
	change func(context.Context, any) error
	ended  func() error // what to tell a caller that leaves before its turn
	asks   chan ask
	end    chan result // has room for the verdict: nobody waits for a caller that left
	state  atomic.Int32
	// unwritten says that no write carries it, nor ever will, unless it runs again.
	unwritten atomic.Bool
	left      atomic.Pointer[func(context.Context) bool] // tells the group that the caller's context ended
}

// The states of a part.
const (
	idle  int32 = iota
	asked       // an ask is under way: it will be answered
	away        // the caller has left: it will not run again
)

// ask is the request to run the change on a copy of the item.
type ask struct {
	table  *typed.Table
	from   typed.Snapshot  // the caller's own: nobody else has this copy
	fresh  bool            // there is no item yet
	ctx    context.Context // ends when the right to write is lost
	answer chan<- answer
}

// answer is what came of it.
type answer struct {
	ran     bool  // false: the caller has left, or its change did not return
	item    any   // as the change left it: to be given back to the caller, not to be read
	changed bool  // it differs from what the change got
	edit    edit  // how
	err     error // the change's own
}

// edit is a change in encoded form, which shares nothing with its caller.
type edit struct {
	diff    ddb.Diff
	after   ddb.Item
	version int64
}

type result struct {
	item any
	err  error
}

// NewParticipant makes a part. ended, optional, adds to the error of a caller that
// leaves while it waits for its turn.
func NewParticipant(ctx context.Context, create bool, change func(context.Context, any) error, ended func() error) *Participant {
	return &Participant{Create: create, ctx: ctx, began: time.Now(), change: change, ended: ended, asks: make(chan ask, 1), end: make(chan result, 1)}
}

// Await runs the change whenever the group asks for it, in the caller's
// goroutine, and returns the verdict.
func (p *Participant) Await() (item any, err error) {
	defer p.leave() // also when change panics
	ran, over := false, false
	done := p.ctx.Done()
	var timeout <-chan time.Time
	for {
		select {
		case r := <-p.end:
			return r.item, r.err
		case a := <-p.asks:
			if over {
				// An earlier write of the change, if there was one, has failed.
				p.refuse(a)
				return item, p.gone()
			}
			ran = true
			p.run(a)
		case <-done:
			done, over = nil, true
			last := p.tell()
			if (!ran || p.unwritten.Load()) && !last && p.state.CompareAndSwap(idle, away) {
				return item, p.gone()
			}
			timer := time.NewTimer(settle)
			defer timer.Stop()
			timeout = timer.C
		case <-timeout:
			timeout = nil
			switch {
			case !p.state.CompareAndSwap(idle, away): // an ask is on its way
			case ran && !p.unwritten.Load():
				return item, lock.NoVerdict(ddb.CtxError(p.ctx))
			default:
				return item, p.gone()
			}
		}
	}
}

// gone is the error of a caller that left, and of whom nothing was written.
func (p *Participant) gone() error {
	if p.ended == nil {
		return ddb.CtxError(p.ctx)
	}
	what, end := p.ended(), ddb.CtxError(p.ctx)
	if what != nil {
		end = ddb.Waited(time.Since(p.began), end)
	}
	return ddb.Join(what, end)
}

// tell tells the group that the caller's context ended; true if it was the last
// one that the group worked for.
func (p *Participant) tell() bool {
	left := p.left.Swap(nil)
	return left != nil && (*left)(p.ctx)
}

// own is the error of a group that all have left, as this caller hears it: each
// is told the end of its own context, and not whose end was the last.
func (p *Participant) own(err error) error {
	end := ddb.CtxError(p.ctx)
	if end == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var locked *repo.LockedError
	var conflict *repo.ConflictError
	switch {
	case errors.Is(err, repo.ErrOutcomeUnknown):
		return lock.NoVerdict(end)
	case errors.As(err, &locked):
		return ddb.Join(locked, ddb.Waited(time.Since(p.began), end))
	case errors.Is(err, repo.ErrLocked):
		return ddb.Join(repo.ErrLocked, ddb.Waited(time.Since(p.began), end))
	case errors.As(err, &conflict):
		return ddb.Join(conflict, ddb.Waited(time.Since(p.began), end))
	}
	return end
}

// run runs the change. The answer is sent even if it panics.
func (p *Participant) run(a ask) {
	p.unwritten.Store(false)
	var out answer
	defer func() {
		if out.ran {
			p.state.Store(idle)
		} else {
			p.state.Store(away)
		}
		a.answer <- out
	}()
	ctx, cancel := ddb.Merge(p.ctx, a.ctx)
	defer cancel()
	out = p.apply(ctx, a)
	if out.err == nil && !out.changed || out.err != nil && !errors.Is(out.err, repo.Remove) {
		p.unwritten.Store(true) // there is nothing of it to write
	}
}

// apply runs the change and encodes what it left, here in its caller's
// goroutine: as long as it runs the caller cannot be told anything, and cannot
// use the item's memory for something else. After it nobody reads that memory.
func (p *Participant) apply(ctx context.Context, a ask) answer {
	out := answer{ran: true}
	e, err := typed.ChangeOnce(ctx, a.table, a.from, p.change, p.Once)
	switch {
	case err == nil && e.Remove:
		err = repo.Remove
	case err == nil:
		err = typed.CheckNotStale(a.table.Core, a.from.Raw, e.After)
	}
	if out.err = err; err != nil {
		return out
	}
	item := e.Item
	out.edit = edit{e.Diff, e.After, a.table.Version(item)}
	if out.changed = a.fresh || !e.Diff.Empty(); out.changed {
		out.edit.version++
		item = a.table.WithVersion(item, out.edit.version)
	}
	out.item = item
	return out
}

// refuse answers an ask that comes too late.
func (p *Participant) refuse(a ask) {
	p.state.Store(away)
	a.answer <- answer{}
}

// leave ends the part. An ask that was announced is answered.
func (p *Participant) leave() {
	p.tell() // the group may still work, but not for us
	if p.state.Swap(away) == asked {
		p.refuse(<-p.asks)
	}
}

// ask lets the part run its change on an item, and waits until it has; it has
// not run if the caller has left or its change panicked.
func (p *Participant) ask(ctx context.Context, a ask) answer {
	if !p.state.CompareAndSwap(idle, asked) {
		return answer{}
	}
	to := make(chan answer, 1)
	a.ctx, a.answer = ctx, to
	p.asks <- a
	return <-to
}
