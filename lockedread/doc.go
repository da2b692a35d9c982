// Package lockedread takes a lock on a DynamoDB item and reads the item in the
// same request, and commits a change and releases the lock in another: two
// requests for a safe read-modify-write.
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
// it within one Region (or a strongly consistent global table), and between
// writers that follow the protocol.
//
// # Protocol
//
// Identity. Every acquisition has a fresh id, <owner>#<128 random bits>, in
// lockedBy, and a fencing token, one more than the last, in lockToken and
// lockHeld. A hold is its holder's own while both lockedBy and lockHeld are
// as it wrote them: a late copy of an acquire makes a ghost with the same id
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
// A key without an item is locked, for an upsert only, by a stub that readers
// do not see; commit turns it into the item, release deletes it.
package lockedread
