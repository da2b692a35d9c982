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
// # Guarantees
//
// Commits are serial and at most once, always. Execution is exclusive as long
// as clocks differ by less than the allowance (trusting mode) or run at nearly
// equal rates (clockless) and the holder stops at its deadline. External
// effects are safe only if the outside resource rejects smaller tokens. All of
// it within one Region (or a strongly consistent global table, where forgotten
// stubs stay: it has no TTL), and between writers that follow the protocol.
//
// # Protocol
//
// Identity. Every acquisition has a fresh id, <owner>#<96 random bits and a check sum>, in
// lockedBy, and a fencing token in lockHeld; lockToken is the next one. A hold is its holder's own while both lockedBy and lockHeld are
// as it wrote them: a late copy of an acquire makes a hold with the same id
// but another token.
//
// Acquire (1 request). Sets lockedBy, lockTime, lockLease, lockToken, lockHeld
// if the item exists and lockTime is absent or past by more than the skew
// allowance, and returns the item. If a hold was overtaken, its token goes to
// lockStolen. Clockless mode takes over only a hold that was watched, unchanged,
// for its full lease on the watcher's own clock.
//
// Commit (1 request). Sets what changed and removes lockedBy, lockTime,
// lockLease, lockHeld, if the hold is still own and lockTime is not past.
//
// Verdicts. A commit whose answer was lost is repeated, with the same bytes,
// while the deadline allows. If its condition fails, the image tells: own ids
// mean expired (unknown, if an attempt had no answer); our token in lockStolen means lost; a greater one there, or
// an item that is gone or made anew, means unknown; else only our own commit
// can have ended the hold, so it was applied.
//
// Deadline. The holder stops at [Held.Until]: counted from when the request
// that succeeded was first sent, minus a margin.
//
// # Fair
//
// With Config.Fair processes wait in a queue on the item.
//
// Enqueue (1 request). The list lockQueue gets an entry for each waiting acquisition,
// the first four bytes of its id, and lockToken grows by one. If the lock is free the
// same request takes it. The order of the list is the order of service, so nobody is
// overtaken, and a repeated enqueue changes nothing. An item that is locked by
// hand has no queue: it is waited for as without Fair.
//
// Transfer. The write that ends a hold puts the first entry's acquisition in
// lockedBy, as next#<entry>, with the token after its own, and a grace for
// lockLease: a quarter of the lease, at most 1 s. Its condition has that place
// in it. If nobody is known to wait it frees the lock, under the condition that
// lockToken has not moved. When either fails although the hold stands, the image
// shows who came or left, and the write follows in its new form: the refused one
// can never succeed any more. So the lock is never free while somebody waits.
//
// Wait. Consistent reads; one costs a read unit per 4 KB. The two who are next have
// up to six of them under way at once, a fifth of the time of a read apart, from shortly
// before their turn, which the pace of the line foretells: a dozen reads per turn in
// a crowd. Larger items are read less often, so that two waiters leave a quarter of the
// 3,000 read units that a partition has in a second. Who stands further back sleeps for
// three quarters of the time that the line will need, everybody at most for a third of the
// grace. A read that is still under way when the lock is there ends with the hold. The
// deadline of a hold that was transferred counts the grace from when the last
// read was sent that did not show it; it is not later than lockTime either,
// unless Clockless. A change that takes longer than a third of the grace confirms
// the hold, which makes it one of a full lease (1 request).
//
// Takeover. A hold that stood unchanged for its lockLease since the first answer
// that showed it, or whose lockTime is past by more than the skew, is dead. The
// first in the list takes it, under the condition that hold and place are as seen.
// Each one behind waits a step longer, an eighth of a grace, and at first a
// third of one, for others may have looked so much later; whoever takes over takes
// the places of those ahead away. So a row of those who died in the queue costs
// little more than a grace, a dead holder its lease. Who is alive but missed its
// step, because its process or network stood still, finds its place gone and enqueues
// again. A lock that is found free, because it was broken or its holder was not
// fair, is taken in the same way, but nobody's place with it.
//
// Entries are short, so two may be alike. Nobody waits in a place, or takes a lock,
// that may be another's: an enqueue beside a like entry is refused and made anew, and
// who may have been passed over without knowing asks whom it stands beside.
//
// One lost message of a waiter costs the others a grace at most: a look without
// an answer is repeated after a third of a grace, an enqueue after a grace. A waiter
// whose looks had no answer for a lease gives up.
//
// Dequeue. Whoever gives up leaves its place empty until a hold ends, and transfers, or releases, what
// was transferred to it meanwhile.
//
// While fair processes wait the lock goes from one to the next without ever being
// free, so writers without the lock, and lockers that are not fair, get their
// turn when the queue is empty. Deleting an item ends its queue. A place has
// 5 bytes, which every request on the item bills.
//
// # New items
//
// A key without an item is locked, for an upsert only, by a stub that readers
// do not see; commit turns it into the item, release deletes it.
package lockedread
