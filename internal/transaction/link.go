package transaction

import (
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/rows"
)

// Of is the run behind a *txn.Tx; nil if there is none.
func Of(tx any) *Tx {
	run, _ := hold.Of(tx).(*Tx)
	return run
}

// Names of rows for those who have them in transactions.
type (
	Rows   = rows.Rows
	Row    = rows.Row
	Action = rows.Action
	Ending = rows.Ending
)
