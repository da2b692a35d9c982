package transaction

// open returns the run behind a *txn.Tx.
var open func(tx any) *Tx

// SetOpen is called by package txn, once, when the program starts.
func SetOpen(f func(tx any) *Tx) { open = f }

// Of is the run behind a *txn.Tx; nil if there is none.
func Of(tx any) *Tx { return open(tx) }
