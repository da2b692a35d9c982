// Package lockedread takes a lock on a DynamoDB item and reads the item in the
// same request, and commits a change and releases the lock in another: two
// requests for a safe read-modify-write.
//
//	products, err := lockedread.New(table, lockedread.Config{})
//	if err != nil {
//		return err
//	}
//	held, err := products.Acquire(ctx, repo.Key{Partition: "apple"})
//	if err != nil {
//		return err
//	}
//	defer held.Release(ctx) // does nothing after Commit
//	apple := held.Item()
//	apple.Stock-- // under held.Context()
//	apple, err = held.Commit(ctx, apple)
//
// The technique is from the article "Practical DynamoDB - Locking Reads"; the
// attributes lockedBy and lockTime are used as there, so that programs which
// follow the article by hand and this package exclude each other. Fencing
// tokens are as in Martin Kleppmann, "How to do distributed locking"; leases
// as in Gray and Cheriton, "Leases" (1989).
//
// # Promise
//
// Commits are serial and at most once, always. Execution is exclusive as long as clocks
// differ by less than ClockSkew, or, with Clockless, run at nearly equal rates, and the
// holder stops at its deadline. External effects are safe only if the outside resource
// rejects smaller tokens ([Held.Token]). All of it between writers that follow the
// protocol, docs/protocol.md, "Item lock".
//
// # Use
//
// Acquire waits; TryAcquire does not. [Held.Context] ends when the lock is lost, with the
// cause. [Held.Until] is the deadline: counted from when the request was first sent, less
// a margin. [Held.Extend] moves it, and Config.Renew does so by itself. A dead holder's
// lock is taken over after its lease; [Locker.Break] ends one before.
//
// A key without an item is locked, for an upsert only, by a stub that readers do not see.
// Commit turns it into the item, release deletes it.
//
// # Waiting
//
// Processes wait in a queue on the item, in the order in which they came, and the write
// that ends a lock gives it to the first of them: no try is refused. The next two read
// the item a dozen times while it is held, one read unit per 4 KB. An entry takes 5 bytes,
// which every request on the item bills. A waiter that died costs the others a second at
// most. A writer without the lock that meets a queue stands in it as well, and pays three
// writes for one. With Config.Race they try again at random times, and get their turn when
// no queue is there: set it in all programs or in none. How it works: docs/protocol.md,
// "Queue on the item".
//
// # Costs
//
// Acquire and commit are one request each, of the item's size in write units. So is each
// try while somebody holds the item, each extension, and a release.
package lockedread
