package once

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

var _ txn.Held = Run{}

// held is the row of a run, and its lock.
type held struct {
	core *protocol.Core
	key  repo.Key
	raw  map[string]types.AttributeValue
	lock *lock.Lock
}

// RequireIn lets a transaction be applied only if nobody has taken the id over: see
// [txn.Tx.Require]. The transaction is an effect like others: if the run fails after
// it, or its process dies, the id is run again, and txn.Once is what keeps the
// transaction from being applied again.
func (r Run) RequireIn(tx *txn.Tx) error {
	if r.held == nil {
		return fmt.Errorf("%w: the run of %q is not from Do", repo.ErrConfig, r.ID)
	}
	return transaction.Of(tx).Require(r.held.core, r.held.key, r.held.raw, transaction.Hold{
		Lease: r.held.lock.Lease,
		Own:   func(w *protocol.Write) { w.Own(r.held.lock.ID(), r.held.lock.Token(), time.Time{}) },
		Lost:  r.held.lock.Refuted,
	})
}
