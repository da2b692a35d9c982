package rows

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Row is a row that is no item of a repository: that of a named lock, a queue, a
// resource or a job. A transaction demands that something of it is still held, does
// something to it, or both, in one part of the commit.
type Row struct {
	Table  *stored.Table
	Key    repo.Key
	Raw    ddb.Item    // the key, encoded
	Holds  []hold.Held // what is demanded of it
	Action Action      // nil: nothing is done to it
	Size   int         // in bytes, of what is put there
}

// Action is what a transaction does to a row.
type Action interface {
	// Write makes the row's part of a request; w has the conditions of what is
	// held. None: there is nothing to do.
	Write(w *ddb.Write) (part types.TransactWriteItem, some bool, err error)
	// Judge says what the image of the row, which has refused a transaction, tells
	// of the whole; clean says that no earlier attempt of it may have been applied.
	Judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict
	// Refused says why the row, as in the image, has refused a transaction of which
	// nothing was written. Nil: it is not to blame, or wants something else now.
	// ErrAgain: another run of the closure must read it again.
	Refused(image ddb.Item) error
	// Applied is called when the transaction is.
	Applied()
}

// ErrAgain is why a transaction was refused that demands a row as its closure has read it.
var ErrAgain = errors.New("the row has changed since it was read")

// Traceless is what the actions on rows have in common that tell nothing of a transaction.
type Traceless struct{}

// Judge cannot tell who has written the row.
func (Traceless) Judge(_ context.Context, _ ddb.Item, clean bool) protocol.Verdict {
	if clean {
		return protocol.Lost
	}
	return protocol.Undecided
}

// Refused is not to be blamed.
func (Traceless) Refused(ddb.Item) error { return nil }

// Applied is left to others.
func (Traceless) Applied() {}

// Ending is an action that ends something held. Nothing else is sent for that while a
// request of the transaction is under way.
type Ending interface {
	Action
	Begin(ctx context.Context) error // Done follows, unless there is an error
	Done()
	Timeout() time.Duration // of an attempt
	// Settle gives back what is held after a request without a verdict, and says
	// what that tells of the transaction.
	Settle(ctx context.Context) protocol.Verdict
}

// Rows are the rows of one run, for one at a time.
type Rows struct{ at map[string]*Row } // by place

// New has no rows.
func New() Rows { return Rows{map[string]*Row{}} }

// At is the row of a key.
func (r Rows) At(table *stored.Table, key repo.Key, raw ddb.Item) *Row {
	row := &Row{Table: table, Key: key, Raw: raw}
	if known := r.at[row.Place()]; known != nil {
		return known
	}
	r.at[row.Place()] = row
	return row
}

// Hold demands that something is still held, once.
func (r Rows) Hold(h hold.Held) {
	row := r.At(h.Table, h.Key, h.Raw)
	if !slices.ContainsFunc(row.Holds, func(other hold.Held) bool { return other.Lease == h.Lease }) {
		row.Holds = append(row.Holds, h)
	}
}

// InOrder are the rows, in the one order of all transactions.
func (r Rows) InOrder() []*Row {
	return slices.SortedFunc(maps.Values(r.at), func(a, b *Row) int { return cmp.Compare(a.Place(), b.Place()) })
}

// Transaction is one run of a transaction's closure.
type Transaction interface {
	hold.Transaction
	// Rows lets somebody add to the rows of the run, alone.
	Rows(add func(Rows)) error
}

// Add adds to the rows of a *txn.Tx.
func Add(tx repo.Tx, add func(Rows)) error {
	if run, ok := hold.Of(tx).(Transaction); ok {
		return run.Rows(add)
	}
	return hold.ErrNone
}

// Place is where the row is in the order of all items and rows.
func (r *Row) Place() string { return Place(r.Table.Table, r.Raw) }

// Place is where something is in that order.
func Place(t *ddb.Table, raw ddb.Item) string { return t.Name + "\x00" + t.KeyText(raw) }

// Usable returns why something that is required has ended, as far as is known. That
// its lease is over is no reason: it is held until somebody takes it over.
func (r *Row) Usable() error {
	for _, h := range r.Holds {
		if why := h.Lease.Ended(); why != nil {
			return h.Lease.Describe(why)
		}
	}
	return nil
}

// Write makes the row's part of a request.
func (r *Row) Write() (part types.TransactWriteItem, some bool, err error) {
	w := r.Table.NewWrite()
	for _, h := range r.Holds {
		h.Own(w)
	}
	if r.Action != nil {
		if part, some, err = r.Action.Write(w); some || err != nil {
			return part, some, err
		}
	}
	if len(r.Holds) == 0 {
		return part, false, nil
	}
	part, err = w.Check(r.Raw)
	return part, true, err
}

// Judge says what the image of the row tells of a transaction that it refused.
func (r *Row) Judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict {
	if r.Action != nil {
		return r.Action.Judge(ctx, image, clean)
	}
	return Traceless{}.Judge(ctx, image, clean)
}

// Refused says why the row refused a transaction of which nothing was written. Nil:
// it wants something else now.
func (r *Row) Refused(ctx context.Context, image ddb.Item) error {
	if r.Action != nil {
		if why := r.Action.Refused(image); why != nil {
			return why
		}
	}
	var lost []error
	for _, h := range r.Holds {
		if why := h.Lost(ctx, image); why != nil {
			lost = append(lost, why)
		}
	}
	return errors.Join(lost...)
}

// Ending is the row's action, if that ends something held.
func (r *Row) Ending() (e Ending, ok bool) {
	e, ok = r.Action.(Ending)
	return e, ok
}
