// Package protocol says what is written to an item, under which condition, and
// how an answer is judged. It is pure: it knows no context, no client and no
// clock but the times that it is given. Engines send what it makes; the models
// in its tests search it exhaustively.
//
// # Words
//
// One word has one meaning in this module. These are the words that need one.
//
//   - lock: the right to change an item, named by the item's own attributes.
//   - holder: who has the lock. Its id is lockedBy, fresh for every acquisition.
//   - token: the fencing token of one hold, lockHeld; it grows with every hold of
//     an item, so that an outside resource can refuse the smaller one.
//   - lease: for how long a lock is taken; expiry: when others may take over,
//     lockTime.
//   - takeover: taking a lock whose lease is over; its token is left in lockStolen.
//   - break: ending somebody else's hold by force, with the same evidence.
//   - stub: an item that is nothing but the lock of a key without data. Readers do
//     not see it.
//   - tombstone: what a deletion by event time leaves, so that late events stay
//     out. Readers do not see it.
//   - image: the item that a failed condition returns (ALL_OLD).
//   - attempt: one request on the wire. It is clean if it certainly changed
//     nothing, ambiguous if it may have.
//   - verdict: the final word on a write: applied, refused, condition (failed, and
//     the image says why), or unknown.
//   - operation id: what a caller calls an operation that is to be made once; the
//     item remembers it (once). Epoch: the span of time for which ids are kept
//     together.
//   - ring: the ids of an item's latest writes, newest first, in documents the recent
//     writers: evidence that a write whose answer was lost was applied.
//   - orphan: a lock that a write without an answer may have left.
//   - handoff: giving the lock to the next caller of the same process.
//   - transfer: giving the lock to the first process that waits in the queue.
//   - queue: the entries of those who wait, a list on the item itself.
//   - entry: the few bytes in it that stand for one who waits; place: where it stands.
//   - grace: how long a transferred lock waits for its new holder to confirm it, in
//     documents the confirmation time.
//   - ticket: a place in a queue that is an item of its own (package ticket).
//   - waiter: who waits for a lock that others hold.
//   - leader: the caller that acts for all who wait in the same process; group:
//     those for whom it acts in one write.
//   - snapshot: an item before a change; edit: what the change makes of it.
//   - cached item: an item that is kept in memory to save the next read.
//   - contention: other processes wanted the item lately.
//
// # A lock
//
//	        acquire                     extend (expiry grows)
//	free ─────────────▶ held ◀───────────────────────┐
//	 ▲                   │ ├──────────────────────────┘
//	 │  commit, release, │ │ expiry passes
//	 ├──────────────────-┘ ▼
//	 │  commit refused   expired ── takeover ──▶ held by another (lockStolen = token)
//	 └────── break ─────────┴────── break ────▶ free (lockStolen = token)
//
// A commit with a caller of the same process behind it keeps the lock (handoff):
// held by the next id, token + 1, without being free in between.
//
// # An entry of the queue on an item
//
//	        enqueue                 transfer              confirm
//	outside ───────▶ waiting ──────────────▶ transferred ─────────▶ held
//	   ▲                │                        │
//	   └── dequeue ─────┘                        │ not confirmed within the grace
//	                                             ▼
//	                                taken over by the next who waits
//
// An enqueue that finds the lock free takes it at once. While a hold lasts nobody's
// place moves, so an entry that has left never comes back to where it stood.
//
// # A ticket
//
//	none ── join ──▶ waiting ── all smaller ones gone ──▶ holding ── done ──▶ none
//	                    │                                   │
//	                    └──── not renewed for a lease ──────┴──▶ evicted by whoever waits behind
//
// # A job
//
//	none ── enqueue ──▶ queued ── start ──▶ running ── done ──▶ none
//	                      ▲                   │
//	                      ├── retry, lease over┤
//	                      │                   ▼ attempts used up
//	                      └──── requeue ──── dead letter ── discard ──▶ none
package protocol
