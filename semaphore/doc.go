// Package semaphore gives out permits for many resources, as many of each as
// its limit says, and keeps a line of queued work for each, with a dispatcher.
// Resources come into being when they are first used; work on one never waits
// for work on another.
//
//	deploys, err := semaphore.New[Deploy](client, "deploys", semaphore.Config{})
//	if err != nil {
//		return err
//	}
//	if _, err := deploys.Enqueue(ctx, "staging", Deploy{Version: "v7"}); err != nil {
//		return err
//	}
//	err = deploys.Run(ctx, func(ctx context.Context, job *semaphore.Job[Deploy]) error {
//		return deploy(ctx, job.Resource(), job.Value()) // one at a time for each environment
//	})
//
// # Promise
//
// No more permits and running jobs of a resource than its limit, as long as
// clocks differ by less than the allowance and handlers stop when their context
// ends. A job that was acknowledged stays in the table until a handler has said
// that it is done, or it is in the dead letters: it is worked on at least once
// (unless none of its starts was ever answered), and by one handler at a time. Counters are those of the rows, after any
// crash, for they change in one transaction.
//
// # Protocol
//
// One table: partition key pk, sort key sk, both strings.
//
//	pk RESOURCE#<shard>  sk <resource>       queued, running, dead, limit, token, changes, swept, paused, asked, p_<id>..., o_<id>..., x_<id or token>...
//	pk JOBS#<resource>   sk <place in line>  id, job, state, attempts, and while it runs token, until, owner
//	pk DEAD#<resource>   sk <id>             id, job, attempts, error, died
//	pk IDS#<resource>    sk <id>             of jobs with an id of the caller's own; expiresAt once the job has ended
//	pk BELL              sk BELL             s0 to sf: when a producer last marked that shard; the wake-up row
//
// Resources are spread over 16 shards by a hash of their name, for every change
// of a job touches its resource. Every change is one TransactWriteItems with a
// ClientRequestToken; "changes" numbers those of a resource:
//
//	Enqueue  put the job if its id is new; queued+1. With an id of the caller's own, put that if it is new, or its time is over
//	start    the jobs from queued to running, as they were read; queued−n, running+n if no more than the limit; next tokens
//	takeover the job as it was read, its lease over; next token
//	Done     delete the job if it runs under our token; running−1
//	Fail     the same, and put it at a later place in line (running−1, queued+1) or to the dead letters (running−1, dead+1)
//	Return   the job from running to queued if it runs under our token; running−1, queued+1
//	Break    the same, under the token that the operator names; leaves x_<token>
//	Cancel   delete the job as it was read, queued; queued−1
//
// Changes that a process wants of one resource while its last transaction is
// under way go together into the next one, with the sum of what each does to the
// counters: DynamoDB refuses transactions that meet on a row, and all of these
// meet on that of the resource. Each row keeps its own condition, and a change
// that is not to blame for a failure is sent again without those that are; so
// what is true of changes one by one stays true.
//
// A permit is an attribute p_<id> of the resource, with the time until which it
// is held: Acquire is one UpdateItem that sets it and counts running+1 if the
// attribute is absent and running < limit; Release removes it and counts
// running−1 if it is there. Those who find no permit free remove the ones whose
// lease is over, if they are as seen, count them off in the same request, and
// leave their names in "swept", with those of earlier removals up to ten:
// evidence for holders who come back.
//
// Callers of one Semaphore, in one process, stand in line for the permits of a resource:
// the first of them asks at the table for all, as many at once as permits were free. While
// all permits are those of their own process it asks once a second. A Release passes its
// permit on to the first who waits: one UpdateItem removes p_<id>, sets p_<id> of the next
// one and gives out the next token, if the own one is there, the other is not, and no more
// run than the limit; a pause, or a limit that was lowered, refuses it, and the permit is
// given back. A copy of the request can do nothing, as no id comes again but by a copy of its
// Acquire: after one, nobody down the line believes evidence against its permit. A permit goes
// from hand to hand at most 8 times, for at most a tenth of the lease, and 4 times where
// others use the resource, or have jobs of it in line. Then the process asks for none for 10
// to 30 ms, so that others have their turn. TryAcquire does not stand in line.
//
// Fencing tokens are given out per resource, to permits and to starts of jobs
// alike, and only grow, also when the row is deleted: the token of a start is the
// Unix time in microseconds, or the one after the last that was given out, if that
// is greater; that of a permit is the one after the last. A start demands that
// the resource's token is less than its own, not that it is as seen.
//
// The limit is the one that SetLimit has set, or else the program's own
// Config.Limit, or else that of the row, which is that of the program with a
// Limit that last started a job, or first acquired a permit. While programs with
// different Limits run, each goes by its own: there are never more than the
// largest of them.
//
// # By force
//
// BreakPermit and BreakJob end what an operator names as it was seen, and leave evidence,
// x_<id> or x_<token>, for a day past the end that it had: the holder's own Release or
// Done, which finds nothing more before its deadline, would take itself for the cause.
// The holder learns it from its next renewal; until then the tokens tell who is the
// later one. Forget removes that evidence with the row.
//
// Pause adds 2^62 to the resource's token, which the condition of every permit and of
// every start then refuses; Resume takes it off.
//
// # Looking for work
//
// Run asks the counters of resources, shard by shard, with reads that may be out of date
// by a moment, for a start's condition decides. Where nothing is queued and nothing runs,
// work can begin by an Enqueue or a Requeue only. Those mark its shard: behind the job they write the
// time into the wake-up row, at most once in 15 s for each process and shard, which
// stands for all that the process enqueues there in these 15 s. A dispatcher looks at the
// shards that were last seen with jobs, at those that were marked until it has looked 15 s
// and the allowance for clocks later, and at all every 15th Config.Poll: a mark that was
// lost, by a clock too far behind, or of a version that makes none, delays a job by
// that, and no more. A mark never goes back, so a late copy of an earlier one does nothing. The answer that nothing of a resource can be started is remembered:
// until it changes, and of one at its limit until a lease that was seen ends. Work that a
// look has found is left to others after two conflicts.
//
// Next and Run read the head of a line: what runs stands there, then what is due.
// A look ends after 200 rows that cannot be started, or 16 where the limit is used
// up. What may stand behind them is looked for page by page, one each third of a
// lease. While other processes are seen to start jobs of the same line, each
// starts some of those that there is room for, at a random place among them; else
// jobs start in the order of the line.
//
// # Trust
//
// What internal/ddb trusts; that the service answers a repeated
// ClientRequestToken of an applied transaction with success (it promises so for
// ten minutes: an Enqueue without an id of the caller's own that
// the network delivers again after that, until its signature is 15 minutes old, brings its job
// back; all other changes name what was read in their conditions and are safe without it); and clocks, up to
// Config.ClockSkew, to tell when others may take over what a dead holder has left.
// Every handle renews itself; its context ends at its deadline, counted from when
// the request was first sent.
//
// # Failures
//
// A process that dies keeps its permits and jobs for the rest of their lease;
// then the next caller, or dispatcher, takes them over. A start without an
// answer leaves a job that runs without a holder, with the same end; it counts
// as an attempt. A job in its last attempt whose holder dies goes to the dead
// letters.
//
// What is broken stands aside, and the rest goes on. A resource whose row has
// other types than ours, or numbers that nobody can have counted, lets nobody in
// (ErrSchema); Run leaves it alone for a lease. A row of a line that waits and
// cannot be read goes to the dead letters, one that runs does when it was seen for a
// whole lease, and one that is not ours is passed over. A value whose decoding
// fails or panics fails its job, and so does a handler that panics, or whose error
// does. Each is logged as an event of its own (dynahold.resource.left_aside,
// dynahold.job.quarantined, dynahold.handler.stuck) and counted in dynahold.skipped.
//
// SetLimit, Pause, Resume and Forget read nothing before they write: each leaves in
// "asked" when it was made, and demands that no later one is there, so a copy that the
// network delivers late changes nothing. Forget takes that away: a copy of an earlier
// Pause or SetLimit can come behind it for 15 minutes. A copy of an Acquire that comes
// when its permit was given back, or refused, makes one that nobody has: it ends with its
// lease, counted from when the request was first sent. A Release that finds its
// permit gone after the lease was over, and nothing that tells who removed it, is
// ErrOutcomeUnknown.
//
// A call ends with its context, and 3 s at most after it where it gives something
// back or must find out what became of a write.
//
// # Where jobs cannot be
//
// Global tables with strong consistency (MRSC) have no transactions and no TTL:
// EnsureTable refuses them with ErrSchema, and so does the first use of a job in
// one. Permits work there.
//
// # In a transaction
//
// Package txn changes items together with jobs. In(tx).Enqueue adds the writes of an
// Enqueue to the commit, [Job.DoneIn] those of a Done; those of one resource are one
// write of its row. [txn.Tx.Require] of a permit or a job adds a check: that p_<id> is
// there, that the job runs under our token. The commit carries a ClientRequestToken of
// its own; after a lost answer the rows of items tell, and of jobs the new row at its
// place in line, which nobody else can have made, or, before its deadline, that the job
// is gone. Where nothing tells, a job that was to end is given back: a Return that is
// applied proves that the transaction was not, and never will be. Such a commit meets
// the transactions of dispatchers at the row of the resource, and is sent again as
// after any conflict.
//
// # Cost
//
// A free permit and its release are two requests of one write unit per KB of
// the resource's row, which grows by about 30 bytes per permit; where callers of one process
// wait for it, one. A job costs, at
// up to 1 KB, 4 write units to enqueue, 4 to start, and 4 to end: a
// transaction bills two for each row; an id of the caller's own costs two more at
// both ends, and a mark in the wake-up row, at most every 15 s for each shard, a request of one
// unit. Next reads the resource and a page of the line besides: three requests, 2 read and
// 4 write units, whether one job is queued or 100,000. [Semaphore.Run]
// often knows the resource already. A dispatcher without work reads the wake-up row once every
// Config.Poll, and all shards every 15th time: about 72 requests and 36 read units a
// minute. Jobs that are started or ended together
// share a request, and the write of the resource: 50 workers in five processes need
// less than two requests per job, after its Enqueue. In a transaction Enqueue and
// DoneIn are 4 units each and no request but a mark, of which 2 are those of the resource, however
// many of its jobs there are; what is required is 2.
//
// The technique is from the article "Building a multi-value semaphore with
// DynamoDB", in its robust variant: work leaves the table when it has succeeded.
package semaphore
