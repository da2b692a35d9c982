// Package semaphore gives out permits for many resources, as many of each as
// its limit says, and keeps a line of queued work for each, with a dispatcher.
// Resources come into being when they are first used; work on one never waits
// for work on another.
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
//	pk RESOURCE#<shard>  sk <resource>       queued, running, dead, limit, token, changes, p_<id>...
//	pk JOBS#<resource>   sk <place in line>  id, job, state, attempts, and while it runs token, until, owner
//	pk DEAD#<resource>   sk <id>             id, job, attempts, error
//
// Resources are spread over 16 shards by a hash of their name, for every change
// of a job touches its resource. Every change is one TransactWriteItems with a
// ClientRequestToken; "changes" numbers those of a resource:
//
//	Enqueue  put the job if its id is new; queued+1
//	start    the job from queued to running, as it was read; queued−1, running+1 if running < limit; next token
//	takeover the job as it was read, its lease over; next token
//	Done     delete the job if it runs under our token; running−1
//	Fail     the same, and put it at a later place in line (running−1, queued+1) or to the dead letters (running−1, dead+1)
//	Return   the job from running to queued if it runs under our token; running−1, queued+1
//
// A permit is an attribute p_<id> of the resource, with the time until which it
// is held: Acquire is one UpdateItem that sets it and counts running+1 if the
// attribute is absent and running < limit; Release removes it and counts
// running−1 if it is there. Those who find no permit free remove the ones whose
// lease is over, if they are as seen, and count them off in the same request.
//
// Fencing tokens are given out per resource, to permits and to starts of jobs
// alike, and only grow, also when the row is deleted (they begin at the Unix
// time in microseconds).
//
// # Trust
//
// What internal/ddb trusts; that the service answers a repeated
// ClientRequestToken of an applied transaction with success (it promises so for
// ten minutes: an Enqueue or Requeue that the network delivers again after that
// brings its job back; all other changes name tokens in their conditions and
// are safe without it); and clocks, up to Config.ClockSkew, to tell when others may
// take over what a dead holder has left. Every handle renews itself; its
// context ends at its deadline, counted from when the request was first sent.
//
// # Failures
//
// A process that dies keeps its permits and jobs for the rest of their lease;
// then the next caller, or dispatcher, takes them over. A start without an
// answer leaves a job that runs without a holder, with the same end; it counts
// as an attempt. A job in its last attempt whose holder dies goes to the dead
// letters.
//
// A late copy of a SetLimit puts an earlier limit back. A Release without an
// answer reports a loss when it is called again and the permit is gone.
//
// # Cost
//
// A free permit and its release are two requests of one write unit per KB of
// the resource's row, which grows by about 30 bytes per permit. A job costs, at
// up to 1 KB, 4 write units to enqueue, 4 to start, and 4 to end: a
// transaction bills two for each row. Next reads the resource and a page of the
// line besides; [Semaphore.Run] often knows the resource already.
//
// The technique is from the article "Building a multi-value semaphore with
// DynamoDB", in its robust variant: work leaves the table when it has succeeded.
package semaphore
