package nesting

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/repo"
)

// place is where a call on an item is, as far as that matters.
type place int

const (
	free     place = iota // nowhere that speaks against it
	inChange              // inside a change of the item
	inHold                // with the context of what holds the item
	inLock                // outside of a transaction that holds its lock, as is meant
	closed                // inside a closure of which it is no part
)

// placeOf is the place of a call on an item; nil: on none that could be one of a
// repository.
func placeOf(ctx context.Context, item *Item) place {
	outside := false
	for f := top(ctx); f != nil; f = f.outer {
		switch {
		case f.outside:
			outside = true
		case f.isOver():
		case f.item != nil:
			if item == nil || !f.item.Is(*item) {
				continue
			}
			if f.ended == nil {
				return inChange
			}
			return inHold
		case f.closure.Over():
		case !outside:
			return closed
		case item != nil && f.closure.Holds(*item):
			return inLock
		}
	}
	return free
}

// Write refuses a call that writes an item. key is as the caller has named it.
func Write(ctx context.Context, item Item, key repo.Key) error {
	switch placeOf(ctx, &item) {
	case inChange:
		return Own(item, key)
	case inHold:
		return itself(item, key)
	case inLock:
		return fmt.Errorf("%s: %w: the transaction holds its lock: a write outside would wait for that: use In(tx)", item.table.ItemName(key), repo.ErrNested)
	case closed:
		return fmt.Errorf("%s: %w", item.table.ItemName(key), withoutIn())
	default:
		return nil
	}
}

// Own is the error of a call on an item from inside a change of it.
func Own(item Item, key repo.Key) error {
	return fmt.Errorf("%s: %w: a change cannot touch its own item by another call: alter the item that it is given", item.table.ItemName(key), repo.ErrNested)
}

// End refuses what ends a hold by writing its item, as Write does: its own hold does not
// stand in its way.
func End(ctx context.Context, item Item, key repo.Key) error {
	if placeOf(ctx, &item) == inHold {
		return nil
	}
	return Write(ctx, item, key)
}

// Wait refuses a call that waits for what its own context holds.
func Wait(ctx context.Context, item Item, key repo.Key) error {
	if Holds(ctx, item) > 0 {
		return itself(item, key)
	}
	return nil
}

// Break refuses to end by force, as operators do, what its own context holds: name tells
// which hold that is. Whoever works under it would work on without it.
func Break(ctx context.Context, item Item, key repo.Key, name string) error {
	for f := top(ctx); f != nil; f = f.outer {
		if f.ended != nil && !f.isOver() && f.item.Is(item) && f.name == name {
			return fmt.Errorf("%s: %w: it is held where this call is made, which would take it from itself: end it by what is held", item.table.ItemName(key), repo.ErrNested)
		}
	}
	return nil
}

func itself(item Item, key repo.Key) error {
	return fmt.Errorf("%s: %w: it is held already where this call is made, which would wait for itself: use what is held", item.table.ItemName(key), repo.ErrNested)
}

// Touch refuses a call of a transaction on an item inside a change of it, or where a
// transaction around holds its lock.
func Touch(ctx context.Context, item Item, key repo.Key, own Closure) error {
	for f := top(ctx); f != nil; f = f.outer {
		switch {
		case f.outside || f.isOver():
		case f.item != nil:
			if !f.item.Is(item) {
				continue
			}
			if f.ended == nil {
				return Own(item, key)
			}
			return itself(item, key)
		case f.closure != own && !f.closure.Over() && f.closure.Holds(item):
			return fmt.Errorf("%s: %w: the transaction around this one holds its lock, and would wait for this one", item.table.ItemName(key), repo.ErrNested)
		}
	}
	return nil
}

// Read refuses the read of a repository inside a closure: what it returns could be of
// another moment than all else, and nobody would find out.
func Read(ctx context.Context) error {
	if placeOf(ctx, nil) == closed {
		return withoutIn()
	}
	return nil
}

// Effect refuses what writes rows of its own, such as those of jobs, where the
// transaction has a form of it.
func Effect(ctx context.Context, what, form string) error {
	if placeOf(ctx, nil) == closed {
		return fmt.Errorf("%s: %w: inside a transaction's closure, without the transaction: use %s, or txn.Outside(ctx) for what is to be no part of it", what, repo.ErrNested, form)
	}
	return nil
}

// Run refuses a transaction inside another.
func Run(ctx context.Context) error {
	if placeOf(ctx, nil) == closed {
		return fmt.Errorf("%w: a transaction inside another, which may run again: use the transaction that is there, or txn.Outside(ctx) if it is meant so", repo.ErrNested)
	}
	return nil
}

func withoutIn() error {
	return fmt.Errorf("%w: inside a transaction's closure, without the transaction: use In(tx) of the repository, or txn.Outside(ctx) for what is to be no part of it", repo.ErrNested)
}
