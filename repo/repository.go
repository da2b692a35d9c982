package repo

import (
	"context"
	"errors"
)

// Repository is what every strategy offers for the items of one table.
type Repository[T any] interface {
	// Get reads an item with a consistent read. ErrNotFound if there is none.
	// One request, one read unit per 4 KB.
	Get(ctx context.Context, key Key) (T, error)

	// Create writes an item that must not exist yet, and returns it with its
	// version. ErrExists if it does. One request.
	//
	// What Create, Update and Upsert return is the item that the caller made:
	// what its encoding leaves out, such as the fraction of a unixtime field or
	// a field tagged "-", is in it all the same, and not in what Get reads.
	Create(ctx context.Context, item T) (T, error)

	// Update reads an item, lets change edit it, and writes the difference if
	// nobody else wrote in between. ErrNotFound if there is none.
	//
	// change may run more than once (after a conflict), always on a fresh
	// item: it must not have effects outside the item, or must stand their
	// repetition. Its context is cancelled, with a cause, when the right to
	// write is lost. An error of change writes nothing and comes back.
	// Returning [Remove] deletes the item. A change that changes nothing
	// writes no data.
	Update(ctx context.Context, key Key, change func(ctx context.Context, item *T) error) (T, error)

	// Upsert is Update, but where there is no item change gets a new one
	// with nothing but its key set.
	Upsert(ctx context.Context, key Key, change func(ctx context.Context, item *T) error) (T, error)

	// Delete deletes an item. ErrNotFound if there is none.
	Delete(ctx context.Context, key Key) error
}

// Remove is returned by a change to delete the item instead of writing it,
// under the same guard. Update then returns the zero T and no error.
var Remove = errors.New("remove the item") //nolint:revive,staticcheck // an instruction, not a failure
