package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// settle is how long a caller whose context ended in the middle of a write
// waits for its verdict: a little longer than the write itself takes to settle.
const settle = 4 * time.Second

// Part is one caller's part in a batch.
type Part[T any] struct {
	Create bool // the item may be missing

	ctx    context.Context
	change func(context.Context, *T) error
	ended  func() error // what to tell a caller that leaves before its turn
	asks   chan ask[T]
	end    chan result[T] // has room for the verdict: nobody waits for a caller that left
	state  atomic.Int32
	// unwritten says that no write carries it, nor ever will, unless it runs again.
	unwritten atomic.Bool
	left      atomic.Pointer[func(context.Context) bool] // tells the batch that the caller's context ended
}

// The states of a part.
const (
	idle  int32 = iota
	asked       // an ask is under way: it will be answered
	away        // the caller has left: it will not run again
)

// ask is the request to run the change on a copy of the item.
type ask[T any] struct {
	ctx    context.Context // ends when the right to write is lost
	item   *T
	answer chan<- answer
}

// answer is what came of it.
type answer struct {
	ran bool // false: the caller has left, or its change did not return
	err error
}

type result[T any] struct {
	item T
	err  error
}

// NewPart makes a part. ended, optional, adds to the error of a caller that
// leaves while it waits for its turn.
func NewPart[T any](ctx context.Context, create bool, change func(context.Context, *T) error, ended func() error) *Part[T] {
	return &Part[T]{Create: create, ctx: ctx, change: change, ended: ended, asks: make(chan ask[T], 1), end: make(chan result[T], 1)}
}

// Await runs the change whenever the batch asks for it, in the caller's
// goroutine, and returns the verdict.
func (p *Part[T]) Await() (item T, err error) {
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
				return item, ddb.Because(repo.ErrOutcomeUnknown, ddb.CtxError(p.ctx))
			default:
				return item, p.gone()
			}
		}
	}
}

// gone is the error of a caller that left, and of whom nothing was written.
func (p *Part[T]) gone() error {
	if p.ended == nil {
		return ddb.CtxError(p.ctx)
	}
	return ddb.Because(p.ended(), ddb.CtxError(p.ctx))
}

// tell tells the batch that the caller's context ended; true if it was the last
// one that the batch worked for.
func (p *Part[T]) tell() bool {
	left := p.left.Swap(nil)
	return left != nil && (*left)(p.ctx)
}

// run runs the change. The answer is sent even if it panics.
func (p *Part[T]) run(a ask[T]) {
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
	ctx, cancel := ddb.Both(p.ctx, a.ctx)
	defer cancel()
	err := p.change(ctx, a.item)
	out = answer{ran: true, err: err}
}

// refuse answers an ask that comes too late.
func (p *Part[T]) refuse(a ask[T]) {
	p.state.Store(away)
	a.answer <- answer{}
}

// leave ends the part. An ask that was announced is answered.
func (p *Part[T]) leave() {
	p.tell() // the batch may still work, but not for us
	if p.state.Swap(away) == asked {
		p.refuse(<-p.asks)
	}
}

// ask lets the part run its change on an item, and waits until it has; false
// if the caller has left or its change panicked.
func (p *Part[T]) ask(ctx context.Context, item *T) (bool, error) {
	if !p.state.CompareAndSwap(idle, asked) {
		return false, nil
	}
	to := make(chan answer, 1)
	p.asks <- ask[T]{ctx, item, to}
	a := <-to
	return a.ran, a.err
}
