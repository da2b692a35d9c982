package transaction

import "github.com/dynahold/dynahold/internal/hold"

// Of is the run behind a *txn.Tx; nil if there is none.
func Of(tx any) *Tx {
	run, _ := hold.Of(tx).(*Tx)
	return run
}
