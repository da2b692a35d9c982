// Package mutex gives named locks, kept in a DynamoDB table, with fencing
// tokens.
//
//	locks, err := mutex.New(client, "locks", mutex.Config{Mode: mutex.FailOpen, Heartbeat: 10 * time.Second})
//	if err != nil {
//		return err
//	}
//	err = locks.Do(ctx, "nightly-report", func(ctx context.Context, lock *mutex.Lock) error {
//		return writeReport(ctx, lock.Token()) // storage refuses smaller tokens
//	})
//
// # Promise
//
// A name is held by one holder at a time, as long as clocks differ by less
// than the allowance (or run at nearly equal rates, with Config.Clockless) and
// a holder stops when the context of its lock ends. Every call ends in a true
// verdict: a lost answer never locks anybody out, and no lock is reported as
// released that another holds.
//
// # Modes
//
// [FailClosed] (the zero value): if the holder dies, the lock stays until
// somebody calls [Locker.Break] or [Locker.Release]. There is no lease and no
// heartbeat. Unlock deletes the row, unless it holds attributes that are not
// the lock's.
//
// [FailOpen]: a lock is for a lease. A heartbeat, if wanted, keeps it; a holder
// that dies or freezes loses it when the lease is over. Unlock keeps the row,
// so that tokens go on from where they were.
//
// Lockers with different modes, leases and clocks may share a table: what a
// hold is, its row tells.
//
// # Protocol
//
// It is the item lock of package lockedread, on rows that are nothing but a
// lock: identity, tokens, takeover, and verdicts are stated there, and in
// docs/protocol.md. What differs:
//
//   - Lock makes the row in the same request that takes the lock.
//   - A fail-closed hold has its lockTime at the end of the year 9999 and no
//     lockLease: nobody's clock, and nobody who watches it, may take it over.
//   - Unlock of a fail-closed hold is a DeleteItem under the same condition,
//     lockedBy and lockHeld as written. If its answer was lost, that the row is
//     gone is the evidence.
//
// # Callers of one locker
//
// They stand in line for a name, in the order in which they came: one of them goes to
// the table, and waits there for holders of other processes. Its Unlock passes the lock
// on to the next: one request that puts an identity of its own and the next token in
// the place of the old ones, under the condition of an unlock, and the next caller sends
// nothing. A lock goes from hand to hand at most 32 times, for at most a tenth of the
// lease; 4 times where others were seen to wait for it, and the process then stays away
// for 10 to 30 ms. TryLock does not stand in line. Whoever has had the lock for longer
// than its lease (5 s, of a fail-closed one), or has let it expire, or was found to have
// lost it, is no longer waited for in line, but at the table.
//
// # Fair
//
// With Config.Fair processes wait in a queue on the row, as they do for items: see
// package lockedread, "Fair", for how an entry is made, how the lock is handed over, how
// those who wait look, and who takes over from the dead. What differs:
//
//   - An enqueue makes the row where there is none, and takes the lock in the same request.
//   - A fail-closed lock is handed over for a grace (1 s), like every other: one to whom it
//     is handed may have died since it enqueued. So it is confirmed before its Lock returns,
//     by one request that takes the end and the lease away and puts the holder's own id in
//     lockedBy. From then on nobody takes it over. Who has died before costs a grace.
//   - The unlock of a fail-closed lock deletes the row under the condition that lockToken is
//     as last seen: never while somebody stands in its queue. Where others wait it hands the
//     lock over instead, and the last one deletes the row.
//   - Break and Release leave the row to the queue: the first in it takes the lock.
//   - A fail-closed locker stands behind every lock of this library. A fail-open one tries
//     again and again where a fail-closed one holds the lock: its enqueue would put a lease
//     on that. Give the lockers of a name one Mode.
//   - A fail-closed locker that is not fair deletes the row, with the queue. Whoever stood
//     in it enqueues again, in another order.
//   - A fail-open lock that came through the queue is held as next#<place>, so Info.Owner
//     and LockedError name "next".
//
// Callers of one locker pass the lock on among themselves as above. Where others wait in
// the queue it goes there after eight hands; the process does not stay away, but enqueues.
//
// # Fencing tokens
//
// On one row they grow with every acquisition, also by takeover and after
// Break: whoever lost a lock has a smaller token than all who came later. A
// heartbeat does not change them. The first token of a row is the Unix time in
// microseconds of its taker, when the request was sent.
//
// FailOpen keeps the row, so its tokens always grow. FailClosed deletes it with
// each unlock, and nothing is left that could keep them growing. A token is then
// smaller than that of an earlier holder, who has unlocked, or equal to it, if
// the clocks of the two are that far apart, or if the request to lock, or one
// that had no answer and arrived late, was under way for longer than the earlier
// holder held. It is always greater than those of all whom the same call to Lock
// has found holding the name, and of those whose hold was ended by Break. Where
// an outside resource compares the tokens of all holders, use FailOpen, or give
// the row an attribute of your own: such a row is not deleted.
//
// # Failures
//
// A request to lock that the network delivers only after its caller was told
// of the failure, and after the attempt to undo it, or after a later try was
// granted and its lock released, leaves a hold without a holder: fail-open it
// ends with its lease; fail-closed it stays, as whatever a dead holder leaves,
// and [Locker.List] shows it.
//
// A call to Lock that waits sends a request per try, each with an id of its own.
// It bears any number of lost answers as long as fewer follow each other than
// the client's retry policy allows attempts (three, by default). The newest
// hundred tries without an answer are remembered for as long as they could be in
// the way if they arrive: a lease and the allowance for clocks, or 15 minutes
// where only an operator or a watcher would end the hold. When the call fails,
// what one of them has taken is given back, within 3 s.
//
// Of a request that the network delivers twice the second answer may be the one that is
// seen. An Unlock that finds its row deleted is then also ErrOutcomeUnknown: somebody else may
// have deleted it, or a copy of the Unlock. So is a Release, or a Break, that finds the
// hold ended by force. A SetPayload moves lockToken and demands it as last seen: a late copy
// puts nothing back. Close waits for a
// request that somebody else has under way for the same lock, and a fail-closed
// Unlock without an answer reports a loss when it is called again and its row
// is gone. Fail-closed lockers that use rows of fail-open ones delete them, with
// payload and tokens.
//
// # In a transaction
//
// [txn.Tx.Require] lets a transaction be applied only if a lock is still held: its
// commit compares lockedBy and lockHeld on the row, which a heartbeat does not change.
// No request more, two write units: with it the items of the transaction are safe
// from a holder who does not notice that it was overtaken.
//
// # Cost
//
// A free lock and its unlock are two requests, one write unit each; a heartbeat
// is one more, a failed try one, a takeover none beyond the try. Where callers of one
// locker wait for each other, a lock and its unlock are one. With Fair there are no failed
// tries: an enqueue and the unlock, which goes out twice where somebody has come since the
// holder's last look; the looks, reads of a unit each; and of a fail-closed lock that was
// waited for one that confirms it.
//
// The modes are those of the npm package dynamodb-lock-client; the distinct
// outcomes of a release and its transaction id those of "Implementing
// Pessimistic Locking with DynamoDB and Python". Fencing tokens are from Martin
// Kleppmann, "How to do distributed locking". Locks on several names are taken
// in one order everywhere, as in Havender, "Avoiding deadlock in multitasking
// systems" (1968).
package mutex
