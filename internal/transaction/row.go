package transaction

import (
	"context"
	"sync"

	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/rows"
)

// ofRun are the rows of a run.
type ofRun struct {
	mu  sync.Mutex
	all rows.Rows // guarded by mu
}

func (r *ofRun) inOrder() []*rows.Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.InOrder()
}

// Rows lets somebody add to the rows of the run, alone.
func (tx *Tx) Rows(add func(rows.Rows)) error {
	_, done, err := tx.enter(context.Background())
	if err != nil {
		return err
	}
	defer done()
	tx.rows.mu.Lock()
	defer tx.rows.mu.Unlock()
	add(tx.rows.all)
	return nil
}

// Hold demands that something is still held when the transaction is applied. If
// it has ended already the run cannot be committed, whatever its closure makes of
// the error.
func (tx *Tx) Hold(h hold.Held) error {
	if err := tx.Rows(func(all rows.Rows) { all.Hold(h) }); err != nil {
		return err
	}
	if cause := h.Lease.Cause(); cause != nil {
		return tx.Doom(h.Lease.Describe(cause))
	}
	return nil
}

func rowFailure(r *rows.Row, err error) Failure {
	return Failure{Table: r.Table.Name, Key: r.Key, Err: err}
}
