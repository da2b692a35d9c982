package typed

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Request is one change of one item.
type Request struct {
	Create bool // start a new item where there is none
	Change func(context.Context, any) error
	Once   *Once // the id under which Change is made once; nil: none
	// Edit, if set, makes the edit in Change's place: where the changed item is
	// not this goroutine's to read, only its encoding. Made then tells, in Once's
	// place, whether an item shows that all of it was made.
	Edit func(context.Context, Snapshot) (Edit, error)
	Made func(ctx context.Context, item ddb.Item) bool
	// From is what this process believes the item to be; nil: it is read. The
	// write's condition protects a change of it; what Change says without a
	// write is confirmed on a fresh read.
	From ddb.Item
	// Begin, if set, is told before each Change whether there is no item yet.
	Begin func(fresh bool)
	// Count, if set, is how many changes the write stands for.
	Count func() int64
	// Keep reports whether anybody needs the item as the call leaves it; nil:
	// nobody does.
	Keep func() bool
}

// MakeEdit makes the edit of an item.
func (r *Request) MakeEdit(ctx context.Context, t *Table, from Snapshot) (Edit, error) {
	if r.Edit != nil {
		return r.Edit(ctx, from)
	}
	return ChangeOnce(ctx, t, from, r.Change, r.Once)
}

// IsMade reports whether an item remembers that the change was made: by this call,
// by an attempt without an answer, or by another call with the same id.
func (r *Request) IsMade(ctx context.Context, core *protocol.Core, item ddb.Item) bool {
	if r.Made != nil {
		return r.Made(ctx, item)
	}
	return r.Once.Shows(ctx, core, item)
}
