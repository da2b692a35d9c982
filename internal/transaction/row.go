package transaction

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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
	table  *stored.Table
	key    repo.Key
	raw    ddb.Item // the key, encoded
	holds  []hold.Held
	Action Action // nil: nothing is done to it
	Size   int    // in bytes, of what is put there
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
	Refused(image ddb.Item) error
	// Applied is called when the transaction is.
	Applied()
}

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

// rows are the rows of a run.
type rows struct {
	mu sync.Mutex
	at map[string]*Row // guarded by mu: by place
}

// Rows are the rows of a run, for who is adding to them.
type Rows struct{ of *rows }

// At is the row of a key.
func (r Rows) At(table *stored.Table, key repo.Key, raw ddb.Item) *Row {
	row := &Row{table: table, key: key, raw: raw}
	if known := r.of.at[row.place()]; known != nil {
		return known
	}
	if r.of.at == nil {
		r.of.at = map[string]*Row{}
	}
	r.of.at[row.place()] = row
	return row
}

// Rows lets somebody add to the rows of the run, alone.
func (tx *Tx) Rows(add func(Rows)) error {
	_, done, err := tx.enter(context.Background())
	if err != nil {
		return err
	}
	defer done()
	tx.rows.mu.Lock()
	defer tx.rows.mu.Unlock()
	add(Rows{&tx.rows})
	return nil
}

// Hold demands that something is still held when the transaction is applied. If
// it has ended already the run cannot be committed, whatever its closure makes of
// the error.
func (tx *Tx) Hold(h hold.Held) error {
	err := tx.Rows(func(all Rows) {
		row := all.At(h.Table, h.Key, h.Raw)
		if !slices.ContainsFunc(row.holds, func(other hold.Held) bool { return other.Lease == h.Lease }) {
			row.holds = append(row.holds, h)
		}
	})
	if err != nil {
		return err
	}
	if cause := h.Lease.Cause(); cause != nil {
		return tx.doom(h.Lease.Describe(cause))
	}
	return nil
}

// inOrder are the rows, in the one order of all transactions.
func (r *rows) inOrder() []*Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.at), func(a, b *Row) int { return cmp.Compare(a.place(), b.place()) })
}

func (r *Row) place() string { return placeOf(r.table.Table, r.raw) }

// placeOf is where something is in the order of all items and rows.
func placeOf(t *ddb.Table, raw ddb.Item) string { return t.Name + "\x00" + t.KeyText(raw) }

func (r *Row) failure(err error) Failure { return Failure{Table: r.table.Name, Key: r.key, Err: err} }

// usable returns why something that is required has ended, as far as is known. That
// its lease is over is no reason: it is held until somebody takes it over.
func (r *Row) usable() error {
	for _, h := range r.holds {
		if why := h.Lease.Ended(); why != nil {
			return h.Lease.Describe(why)
		}
	}
	return nil
}

// write makes the row's part of a request.
func (r *Row) write() (part types.TransactWriteItem, some bool, err error) {
	w := r.table.NewWrite()
	for _, h := range r.holds {
		h.Own(w)
	}
	if r.Action != nil {
		if part, some, err = r.Action.Write(w); some || err != nil {
			return part, some, err
		}
	}
	if len(r.holds) == 0 {
		return part, false, nil
	}
	part, err = w.Check(r.raw)
	return part, true, err
}

// judge says what the image of the row tells of a transaction that it refused.
func (r *Row) judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict {
	switch {
	case r.Action != nil:
		return r.Action.Judge(ctx, image, clean)
	case clean:
		return protocol.Lost
	}
	return protocol.Undecided // it keeps no trace
}

// refused says why the row refused a transaction of which nothing was written. Nil:
// it wants something else now.
func (r *Row) refused(ctx context.Context, image ddb.Item) error {
	if r.Action != nil {
		if why := r.Action.Refused(image); why != nil {
			return why
		}
	}
	var lost []error
	for _, h := range r.holds {
		if why := h.Lost(ctx, image); why != nil {
			lost = append(lost, why)
		}
	}
	return errors.Join(lost...)
}

// ending is the row's action, if that ends something held.
func (r *Row) ending() (e Ending, ok bool) {
	e, ok = r.Action.(Ending)
	return e, ok
}
