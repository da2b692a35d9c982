package txn

import (
	"context"

	"github.com/dynahold/dynahold/internal/nesting"
)

// Outside is ctx for calls inside a closure that are meant to be no part of its
// transaction: without it they are refused with repo.ErrNested, for each run of the
// closure would make them again, and they stay although the transaction fails. It ends
// as ctx does. A write of an item whose lock the transaction holds is refused all the
// same, for it would wait for the transaction; one of an item that the transaction has
// read makes the closure run again.
func Outside(ctx context.Context) context.Context { return nesting.Outside(ctx) }
