// Package semaphore gives out permits for many resources, as many of each as its limit
// says, over all processes. Resources come into being when they are first used; a caller of
// one never waits for another.
//
//	licenses, err := semaphore.New(client, "permits", semaphore.Config{Limit: 3})
//	if err != nil {
//		return err
//	}
//	err = licenses.Do(ctx, "encoder", func(ctx context.Context, p *semaphore.Permit) error {
//		return convert(ctx) // three at a time, over all processes
//	})
//
// # Promise
//
// No more permits of a resource than its limit, and running jobs of package jobs in the same
// table count, too: as long as clocks differ by less than Config.ClockSkew, and holders stop
// when their context ends. A permit renews itself; that of a process that dies ends with its
// lease. Counters are those of the row, after any crash.
//
// Each permit has a fencing token, greater than all before it of its resource, also after the
// row was deleted. Where the limit is 1, an outside resource that refuses smaller ones is
// protected.
//
// # Limit
//
// It is that of [Semaphore.SetLimit], or else the program's own Config.Limit, or else that of
// the row: of the program with a Limit that last used it. While programs with different Limits
// run, each goes by its own: there are never more than the largest of them.
//
// # Waiting
//
// Callers of one Semaphore wait in order. Whoever releases hands the permit to the next of
// them, in one request, at most 8 times and for at most a tenth of the lease; 4 times where
// others use the resource. Then the process asks for none for 10 to 30 ms, so that others
// have their turn. Over processes waiting has no order: package ticket has a queue.
//
// # By force
//
// [Semaphore.BreakPermit] ends what an operator names as it was seen. The holder learns it
// from its next renewal; until then the tokens tell who is the later one.
// [Semaphore.Pause] lets what is held go on, and gives out nothing new.
//
// # Failures
//
// A resource whose row has other types than ours, or numbers that nobody can have counted,
// lets nobody in (ErrSchema). A Release that finds its permit gone after the lease was over,
// and nothing that tells who removed it, is ErrOutcomeUnknown. A copy of an Acquire that the
// network delivers late makes a permit that nobody has: it ends with its lease, counted from
// when the request was first sent. A call ends with its context, and 3 s at most after it
// where it gives something back or must find out what became of a write.
//
// # Cost
//
// A free permit and its release are two requests of one write unit per KB of the row, which
// grows by about 30 bytes for each permit that is held; a handoff is one.
// What is written, and why, is in docs/protocol.md.
package semaphore
