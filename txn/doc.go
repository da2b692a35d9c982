// Package txn changes several items in one transaction: every item is written, or
// none, whatever strategy each of them follows, with a true verdict.
//
//	err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
//		accounts, orders := s.accounts.In(tx), s.orders.In(tx)
//		if _, err := accounts.Update(ctx, key, charge); err != nil {
//			return err // nothing of the whole is written
//		}
//		_, err := orders.Create(ctx, order)
//		return err
//	})
//
// In(tx) is the repository inside the transaction, and sees what the transaction has
// written. Transactions are serializable, with each other and with every single change.
// An error of the closure is returned only if what it saw was of one moment. How that is
// done: docs/protocol.md, "Transactions".
//
// # Inside a closure
//
// The closure may run more than once: no effects outside of it. Its context ends with the
// caller's, when it returns, and when a lock of the transaction is lost; use no other one.
// A repository without In(tx), Enqueue and Done of jobs, and a transaction inside another
// are refused with repo.ErrNested before anything is sent; [Outside] is for who means it.
// Reads of a Table are no part of the transaction. Take locks, permits and turns before.
//
// Goroutines may share the transaction, if all have ended when the closure returns. Their
// operations on one item follow each other; changes of two items that wait for each other
// are repo.ErrNested.
//
// # Locks and jobs
//
// [Tx.Require] lets a transaction be applied only if something is still held: the commit
// compares holder and token, in DynamoDB.
//
//	err := locks.Do(ctx, "nightly-report", func(ctx context.Context, lock *mutex.Lock) error {
//		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
//			if err := tx.Require(lock); err != nil {
//				return err
//			}
//			_, err := reports.In(tx).Create(ctx, report)
//			return err
//		})
//	})
//
// # Costs
//
// k items named beforehand ([Tx.Prefetch]) take two requests; found on the way, k reads
// and one. A conflict takes one more, a pessimistic item one for its lock. Transactions of
// one process that have refused each other come to the items one by one. DynamoDB bills
// twice the units of single writes. One item costs what it costs alone; what is required
// two units. At most 100 items and 4 MB, of one client ([ErrTooLarge]).
//
// # Under an id
//
// [Once] applies a transaction once for an id, such as a message's: every item that it
// writes remembers the id (as Once of its repository does), and a run that finds it
// writes nothing and returns nil. What is only read or deleted remembers nothing, nor does
// a job: touch first what every run writes, or give jobs ids (jobs.WithID). An id has no
// owner: a client's goes with the client; [Operation.WithFingerprint] parts requests.
package txn
