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
// A name is held by one holder at a time, as long as clocks differ by less than
// ClockSkew (or run at nearly equal rates, with Config.Clockless) and a holder stops when
// the context of its lock ends. Every call ends in a true verdict: a lost answer never
// locks anybody out, and no lock is reported as released that another holds. What copies
// of a request may do: docs/limits.md. How it works: docs/protocol.md, "Named locks".
//
// # Modes
//
// [FailClosed] (the zero value): if the holder dies, the lock stays until somebody calls
// [Locker.Break] or [Locker.Release]. There is no lease and no heartbeat. Unlock deletes
// the row, unless it had others' attributes when it was locked: later ones go with it.
// [FailOpen]: a lock is for a lease. A heartbeat, if wanted, keeps it; a holder that dies
// or freezes loses it when the lease is over. Unlock keeps the row, so that tokens go on.
//
// # Waiting
//
// Callers of one locker wait for a name in the order in which they came, and an Unlock
// passes the lock on to the next, in one request: at most 32 times, for a tenth of the
// lease; fewer where other processes want it. TryLock does not wait. Lockers of other
// processes wait in a queue on the row, in the order in which they came, or, with
// Config.Race, try again at random times. Give the lockers of a name one Mode, and Race to
// all or none of them: who races deletes a fail-closed row with its queue.
//
// # Fencing tokens
//
// On one row they grow with every acquisition, also by takeover and after Break. The first
// is the Unix time in microseconds. FailOpen keeps the row, so its tokens always grow.
// FailClosed deletes it with each unlock: a token is then greater than those that the same
// call has found holding the name, and can be smaller than that of an earlier holder who
// has unlocked. Where an outside resource compares the tokens of all holders, use FailOpen.
//
// # Failures
//
// A request to lock that arrives after its caller has given up, and after the attempt to
// undo it, leaves a hold that nobody has, for a lease or until Break ([Locker.List]).
//
// # Costs
//
// A free lock and its unlock are two requests of one write unit each. A heartbeat and a
// refused try are one each; passed on within a process both are one. In the queue there
// are no tries: a dozen reads of a unit a turn, and of a fail-closed lock that was waited
// for one write more.
//
// The modes are those of the npm package dynamodb-lock-client, fencing tokens from Martin
// Kleppmann, "How to do distributed locking", the one order of several names from Havender,
// "Avoiding deadlock in multitasking systems" (1968).
package mutex
