package once

import (
	"fmt"

	"github.com/dynahold/dynahold/repo"
)

var _ repo.Held = Run{}

// RequireIn lets a transaction be applied only if nobody has taken the id over: see
// Require of txn.Tx. The transaction is an effect like others: if the run fails after
// it, or its process dies, the id is run again, and txn.Once is what keeps the
// transaction from being applied again.
func (r Run) RequireIn(tx repo.Tx) error {
	if r.lock == nil {
		return fmt.Errorf("%w: the run of %q is not from Do", repo.ErrConfig, r.ID)
	}
	return r.lock.Require(tx)
}
