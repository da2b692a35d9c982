// Package jobs is a queue of work that is not lost, for many resources: of each as many jobs run
// at once as its limit says, over all processes. Work on one never waits for another.
//
//	deploys, err := jobs.New[Deploy](client, "deploys", jobs.Config{})
//	if err != nil {
//		return err
//	}
//	if _, err := deploys.Enqueue(ctx, "staging", Deploy{Version: "v7"}); err != nil {
//		return err
//	}
//	err = deploys.Run(ctx, func(ctx context.Context, job *jobs.Job[Deploy]) error {
//		return deploy(ctx, job.Resource(), job.Value()) // one at a time for each environment
//	})
//
// # Promise
//
// A job that was acknowledged stays in the table until a handler has said that it is done, or
// lies in the dead letters. It is worked on at least once, unless none of its starts was ever
// answered, and by one handler at a time, as long as clocks differ by less than
// Config.ClockSkew and handlers stop when their context ends. No more jobs of a resource run,
// with permits of package semaphore in the same table, than its limit. Counters are those of
// the rows, after any crash, for they change in one transaction; [Queue.Audit] compares them.
//
// Jobs of a resource start by [Priority], and of one priority in the order of their producers'
// clocks, but for those that failed, and where several processes start some at once.
//
// # In a transaction
//
// In(tx).Enqueue of [Queue.In] queues a job if a transaction of package txn is applied,
// In(tx).Cancel removes one that waits, [Job.DoneIn] ends one with it: so a change and its
// job are one. Elsewhere [WithID] lets a message that comes twice leave one job.
//
// # At a time
//
// [Queue.Periodic] enqueues a job for each tick of a schedule, once over all processes.
// With [At] or [After] a job is started at its time or later, by the clock of who starts it;
// so it is after a failure, and [Job.Snooze]. Dispatchers find it with their next look after
// its time, in 15 times Config.Poll where its producer died in Enqueue. However many wait,
// they cost who looks for work one read in 30 s for each 16th of the resources.
//
// # Failures
//
// A process that dies keeps its jobs for the rest of their lease; then others take them over,
// the attempt counted. A handler that returns an error, or panics, fails its job: it is tried
// again after Config.Retry, and goes to the dead letters after the last attempt. So does a
// job that cannot be read. A resource whose row cannot be read is left aside for a lease. Each
// is logged, and counted in dynahold.skipped. What became of a job [Queue.Status] tells: of
// one that is done, cancelled or discarded as long as [Keep] says.
// An Enqueue without an id, whose copy comes more than ten minutes later, brings its job back.
//
// # Cost
//
// A job of up to 1 KB costs 4 write units to enqueue, 4 to start and 4 to end: its row and the
// counters of its resource, in one transaction. With a limit above 1 a worker of [Queue.Run]
// that no other resource needs ends a job and starts the next in one, 2 less: the end waits for
// a query of what is queued, 250 ms at most. Jobs enqueued, started or ended together share the
// write of the resource: by [Queue.EnqueueMany] and with a limit of 8, one costs 7.3. [WithID]
// and [Unique] are 2 more at both ends, [Keep] 2, a time 6 when it has come. Next reads 2 units,
// however many jobs are queued or for later; an idle dispatcher 36 a minute, in some 72 requests.
package jobs
