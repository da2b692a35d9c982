package nesting

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// frame is one of the things that a context is inside of.
type frame struct {
	outer   *frame
	over    atomic.Bool // a context that was derived from its own may outlive it
	item    *Item       // the change's; nil: it is no change
	closure Closure     // nil: it is none
	outside bool        // what is below means to be no part of the closures above
}

// Item names an item.
type Item struct {
	core *protocol.Core
	text string
}

// ItemOf names an item by its encoded key.
func ItemOf(core *protocol.Core, raw ddb.Item) Item { return Item{core, core.KeyText(raw)} }

// Is reports whether both are the same item, by whichever repository.
func (i Item) Is(other Item) bool {
	return i.text == other.text && i.core.Name == other.core.Name && same(i.core.Client, other.core.Client)
}

// same reports whether two clients are one. Two of them may go to two Regions, with a
// table of one name in each.
func same(a, b ddb.Client) bool {
	if !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() {
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return a == b
}

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
	return change(f.under(ctx))
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
		if f.item != nil && !f.over.Load() {
			items = append(items, *f.item)
		}
	}
	return items
}
