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
// In(tx) of a repository is that repository inside the transaction. It is a
// repo.Repository, so that code which works on one composes into transactions
// unchanged, and it sees what the transaction has written. Nothing is written before
// the closure has returned nil.
//
// # Promise
//
// Transactions are serializable, with each other and with every single change by a
// strategy: at the moment when one is applied, everything that its closure has read
// is as it was read. What the closure sees before that may be of several moments; it
// is then run again, and what it returned is forgotten. An error of the closure is
// returned only if what it saw was of one moment. Where nobody can say, because a lock
// was lost, the context has ended, or the check failed, that is the error, and the
// closure's is in its text only.
//
// The closure may run more than once: it must not have effects outside the
// transaction, or must stand their repetition. Its context ends with the caller's,
// when it returns, and when a lock of the transaction is lost, with the cause.
//
// # Calls inside a closure
//
// A repository is used by its In(tx). Without, Get and everything that writes are
// refused with repo.ErrNested, before anything is sent: each run would write again, also
// if the transaction fails, and what is read could be of another moment. So are
// Enqueue and Done of jobs, which have forms for transactions, and a transaction inside
// another. [Outside] is for who means it. Query, Scan and the other reads of a Table are
// no part of a transaction, and allowed. Take locks, permits and turns before: a
// closure that runs again would wait for its own.
//
// The closure's context tells, and each that is derived from it: use no other one
// inside. A call with the context around the closure looks like somebody else's.
//
// Goroutines of the closure may share the transaction, if all have ended when it
// returns. Their operations on one item follow each other; what one has changed the
// next sees. A change cannot touch its own item by another call, nor may changes of two
// items wait for each other: both are repo.ErrNested. [Tx.Prefetch] leaves an item to
// the operation that is at it.
//
// # Protocol
//
// What each item's write and check is, how a refused or unanswered commit is
// judged, and in which order locks are taken is stated in docs/protocol.md,
// "Transactions over several items". In short: the first touch of an item reads it
// (optimistic, nolock) or locks it (pessimistic). The commit is one
// TransactWriteItems, with a condition for every item that was read, and the same id
// in the ring of writers of every item that is written. Where others wrote first, the
// closure runs again from the items that the failed commit has returned. A lock that
// another holds is waited for only in the order of table and key; else all are let
// go, and taken again in that order before the closure runs again: so transactions
// cannot wait for each other in a circle, whatever the order in which they touch
// items. Transactions and single changes of one process, by one repository, wait for a
// lock in one line, and a commit hands the lock on to the next of them. A commit that
// was refused is repeated at once two times and then after short sleeps, or, where a
// repository has optimistic.Config.Fair, after a wait in the queue of the item that
// stood in the way: others are before it once each, and not as chance has it.
//
// # Locks and jobs
//
// [Tx.Require] lets a transaction be applied only if something is still held: a named
// lock, a turn, a permit, a job, a run of package once. The commit compares holder and token on its row, so
// that nobody who has taken it over can come between the last look of the holder and
// the write; a fencing token needs no other place where it is checked. A lease that
// runs out while the closure runs is not missed: until somebody takes it over it is
// held. A hold that others have taken over fails the transaction at once; the closure
// does not run again.
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
// Jobs of package semaphore are queued with the change that brings them about (its
// In), and end with the change that they make (DoneIn of a job). So a queue needs no
// outbox, and a handler that dies after its change is not run for it again.
//
// # Costs
//
// One item costs what it costs alone. Of more: k items named beforehand
// ([Tx.Prefetch]) are two requests, found on the way k reads and one; a conflict
// costs one more, and two (reading anew, and the commit) from the third in a row on,
// or where another transaction is at one of the items in that moment; each item of a
// pessimistic repository one request for its lock, in the place of its read, and none
// where the caller before, in the same process, has handed the lock on. Create,
// and Put, Apply and DeleteAt of nolock, read nothing; neither do Apply, Save and
// Remove of the others, unless they have an id or were refused. If the closure fails behind
// a Create, that there is no item is looked up.
// DynamoDB bills an item in a transaction, written, checked or read, with twice the
// units. What is required is one more item of the commit, of two units, and no request;
// a job that is queued or ended is two, or three, of which that of its resource is
// shared. Only reads: nothing beside them where they were of one request or of one
// item, else one TransactGetItems at the end.
//
// # Under an id
//
// [Once] runs a transaction under the id of an operation, such as that of a message
// that may come again. Every item that the transaction writes remembers the id, in the
// same write: 12 bytes, for TableConfig.Remember of its table at least, and in the
// attributes that Once of a repository uses. The id is looked for on every item that
// the closure reads or writes: if one remembers it, the whole was applied. Then
// nothing more is done, the operation that has found it returns an error, and Run
// returns nil, whatever the closure makes of that; [Operation.Repeated] says so. No
// request more: a repetition costs the first touch of such an item.
//
// What is promised: of all runs under one id that touch an item in common which each
// of them would write, one is applied, also if they run at the same time, or one of
// them ended with repo.ErrOutcomeUnknown. What is not: an item that was only read, or
// deleted (but by nolock, whose tombstones remember), remembers nothing, and no row of
// a lock or a job does (a job has an id of its own: semaphore.WithID). So a
// repetition that touches nothing of what the first run has written, because data has
// changed since, is applied too; and one whose closure fails before it touches such
// an item returns that error. Where the items depend on data, touch one first that
// every run writes: the order, say, that the message is about. Create is good for
// that: the item that is there shows the id.
//
// Items that thousands of such transactions write grow by all their ids, which every
// write bills, and from 4,096 ids in Remember on refuse more. Where the transaction makes
// an item for the operation, such as an order under the id of its request, Get that first
// and return if it is there: the item is the evidence, and nothing is left on the others.
//
// An id has no owner: two transactions with one id are one operation, whoever runs them.
// What a client chooses goes together with the client (customer + "/" + key), and
// [Operation.WithFingerprint] tells two requests apart that come with one id all the same:
// repo.ErrMismatch, and nothing is written.
//
// An id of a transaction is none of a change of one item, whatever its text: both can
// be in one transaction, products.Once(line.ID).In(tx).
//
// # Errors
//
// An error of the closure comes back as it is. If the commit fails it is an *[Error],
// which names the items and the error of each; errors.Is finds any of them. A condition
// of an Apply that does not hold is one of those (*repo.ConditionError, with the item). At most
// 100 items and 4 MB: [ErrTooLarge], before the commit is sent. Global tables with
// strong consistency have no transactions: two or more items of one are
// repo.ErrSchema.
//
// # Limits
//
// An item takes part by one repository, and a row of a lock or job by that. All tables have the same client, and with it
// account and Region.
package txn
