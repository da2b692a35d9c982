// Package hold is what a transaction asks of anything that is held, so that locks,
// turns, permits and jobs need no transactions, and these know none of them.
package hold

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Held is something held that a transaction requires, and the row that shows it.
type Held struct {
	Table *stored.Table
	Key   repo.Key // of the row
	Raw   ddb.Item // the key, encoded
	Lease *lease.Lease
	// Own adds the holder's condition, of which a renewal changes nothing.
	Own func(w *ddb.Write)
	// Lost ends the handle, because the row, as in the image, has refused the
	// transaction. It returns why; nil where the image does not speak against it.
	Lost func(ctx context.Context, image ddb.Item) error
}

// Transaction is one run of a transaction's closure.
type Transaction interface {
	// Hold demands that something is still held when the transaction is applied. If it
	// has ended already the run cannot be committed, whatever its closure makes of the
	// error.
	Hold(h Held) error
}

// open returns the run behind a *txn.Tx, nil if there is none. In a program without
// package txn nobody has one.
var open = func(any) Transaction { return nil }

// SetOpen is called by package txn, once, when the program starts.
func SetOpen(f func(tx any) Transaction) { open = f }

// Of is the run behind a *txn.Tx; nil if there is none.
func Of(tx any) Transaction { return open(tx) }

// Require demands of a *txn.Tx what is held.
func Require(tx repo.Tx, h Held) error {
	if run := Of(tx); run != nil {
		return run.Hold(h)
	}
	return ErrNone
}

// ErrUnmade is the error of a handle that comes from nowhere.
var ErrUnmade = fmt.Errorf("%w: what is to be held is not from its package", repo.ErrConfig)

// ErrNone is the error where no transaction is under way.
var ErrNone = fmt.Errorf("%w: the transaction is nil, or not from txn.Run", repo.ErrConfig)
