package repo

// Tx is a transaction under way, a *txn.Tx, as what is held knows it: so a program
// without transactions compiles none.
type Tx interface {
	// Require is that of txn.Tx.
	Require(held ...Held) error
}

// Held is something held that a transaction can require: a *mutex.Lock or
// *mutex.Group, a *ticket.Turn, a *semaphore.Permit, a *jobs.Job, or a once.Run.
type Held interface {
	// RequireIn is Require of txn.Tx, of this one. ErrConfig if tx is not from
	// txn.Run.
	RequireIn(tx Tx) error
}
