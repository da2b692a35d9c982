// Package lease keeps what was taken for a time: locks, places in a queue,
// permits, jobs. It is the one home of deadlines, renewal, loss, and contexts that
// end with a hold. A [Kind] says what these differ in: the write that renews it,
// what its answer shows, and how to name it.
//
// # Promise
//
// The context of a [Lease] is cancelled, with the cause, no later than the
// deadline: the end of what was taken, counted from when the request that was
// applied was first sent, less a margin. A renewal never runs beside another
// request of its lease. Whoever wants to send another one waits no longer than
// its own context lasts ([Exclusive]); what ends the lease does not wait for a
// renewal or an extension, which give way. There is one timer per lease, none where nobody asks for
// a renewal or a context, and no goroutine while nothing is due.
//
// # Pace
//
// The renewals of a process start one by one, at most twice as fast as they
// come due in the long run, or 500 in a second if that is more, and at most
// 1,000 wait for an answer. So what was taken at one moment, or could not be
// renewed for a while, is renewed over half an interval and never in a burst; a
// renewal that is due waits that long at most, as long as the service answers
// 1,000 requests in the time between 1,000 slots. Where the interval is a third
// of the lease, no number of leases loses one to an outage of a third of the
// lease, whether the service answers with errors or not at all.
//
// # Trust
//
// The monotonic clock of the process, and its wall clock where that says that
// more time has passed: a suspended machine wakes up expired.
package lease
