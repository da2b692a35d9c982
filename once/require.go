package once

import (
	"fmt"

	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

var _ txn.Held = Run{}

// RequireIn lets a transaction be applied only if nobody has taken the id over: see
// [txn.Tx.Require]. The transaction is an effect like others: if the run fails after
// it, or its process dies, the id is run again, and txn.Once is what keeps the
// transaction from being applied again.
func (r Run) RequireIn(tx *txn.Tx) error {
	if r.lock == nil {
		return fmt.Errorf("%w: the run of %q is not from Do", repo.ErrConfig, r.ID)
	}
	return transaction.Of(tx).RequireLock(r.lock)
}
