package nesting

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// frame is one of the things that a context is inside of.
type frame struct {
	outer   *frame
	over    atomic.Bool  // a context that was derived from its own may outlive it
	item    *Item        // the change's, or of what is held; nil: it is neither
	name    string       // which hold it is, of all on the item; "": it has none
	ended   func() error // of what is held: why it is no longer; nil: it is no hold
	closure Closure      // nil: it is none
	outside bool         // what is below means to be no part of the closures above
}

func (f *frame) isOver() bool { return f.over.Load() || f.ended != nil && f.ended() != nil }

// Closure is the closure of a transaction, while it runs.
type Closure interface {
	// Over reports whether it has returned.
	Over() bool
	// Holds reports whether the transaction holds the lock of an item.
	Holds(item Item) bool
}

// key is where a context has the innermost frame.
type key struct{}

func top(ctx context.Context) *frame {
	f, _ := ctx.Value(key{}).(*frame)
	return f
}

func (f *frame) under(ctx context.Context) context.Context {
	f.outer = top(ctx)
	return context.WithValue(ctx, key{}, f)
}

// Change runs a change of an item with a context that tells.
func Change(ctx context.Context, item Item, change func(context.Context) error) error {
	f := &frame{item: &item}
	defer f.over.Store(true)
	return Returned(change(f.under(ctx)))
}

// Returned is the error that a function of the program has returned inside a call: it says
// nothing of what that has written.
func Returned(err error) error {
	if err == nil || repo.VerdictOf(err) == repo.NotWritten {
		return err
	}
	return telemetry.Return(err)
}

// Beside is what a function of the program has returned, and what became of what it held.
// Whether the call may be made again says the first, unless the hold was lost, and its context
// has ended the function.
func Beside(own, over error) error {
	err := errors.Join(own, over)
	lost := errors.Is(over, repo.ErrLockLost) || errors.Is(over, repo.ErrLockExpired)
	stopped := errors.Is(own, context.Canceled) || errors.Is(own, context.DeadlineExceeded)
	if own == nil || over == nil || lost && stopped || repo.Retryable(own) {
		return err
	}
	return telemetry.End(err)
}

// Holding is the context of what is held, as long as ended is nil. name tells which hold of
// the item it is, for Break.
func Holding(ctx context.Context, item Item, name string, ended func() error) context.Context {
	return (&frame{item: &item, name: name, ended: ended}).under(ctx)
}

// Held is a context of what is held where ctx comes from, and of nothing else: for what is
// taken there, and may be held for longer than ctx lasts.
func Held(ctx context.Context) context.Context {
	held := context.Background()
	for f := top(ctx); f != nil; f = f.outer {
		if f.ended != nil && !f.isOver() {
			held = Holding(held, *f.item, f.name, f.ended)
		}
	}
	return held
}

// Holds is how many times what is held of an item is held where a context comes from.
func Holds(ctx context.Context, item Item) (n int) {
	for f := top(ctx); f != nil; f = f.outer {
		if f.ended != nil && !f.isOver() && f.item.Is(item) {
			n++
		}
	}
	return n
}

// Within is the context of a closure.
func Within(ctx context.Context, c Closure) context.Context {
	return (&frame{closure: c}).under(ctx)
}

// Outside is a context whose calls mean to be no part of the closure that it is inside
// of.
func Outside(ctx context.Context) context.Context {
	return (&frame{outside: true}).under(ctx)
}

// Changing are the items in whose changes a context is.
func Changing(ctx context.Context) (items []Item) {
	for f := top(ctx); f != nil; f = f.outer {
		if f.item != nil && f.ended == nil && !f.over.Load() {
			items = append(items, *f.item)
		}
	}
	return items
}
