// Package lease keeps what was taken for a time: locks, places in a queue,
// permits, jobs. It is the one home of deadlines, renewal, and contexts that
// end with a hold.
//
// # Promise
//
// The context of a [Lease] is cancelled, with the cause, no later than the
// deadline: the end of what was taken, counted from when the request that was
// applied was first sent, less a margin. A renewal never runs beside another
// request of its lease. There is one timer per lease and no goroutine while
// nothing is due; renewals of leases that were taken together drift apart.
//
// # Trust
//
// The monotonic clock of the process, and its wall clock where that says that
// more time has passed: a suspended machine wakes up expired.
package lease
