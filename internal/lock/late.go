package lock

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/pace"
)

// A write that gives the lock to the next in the queue is everybody's time. It may be
// lost, or stall: another is sent beside it when it has had no answer for so many trips.
// Requests that are merely slow are answered by then.
const (
	lostTrips = 8
	leastLost = 100 * time.Millisecond
)

// And it may be slow: then the same goes out sooner. Where trips are even, one that takes so
// many of them is not slow but stalled, and hardly any is sent twice. Where they are not, as
// many are as the budget allows, and many are answered sooner by that.
const (
	lateTripsEven   = 5.0
	lateTripsUneven = 1.5
)

// learned is what is known of the trips to the item where the write that ends the hold in
// this way is waited for by others; the zero value: nobody waits, or nothing is known.
func (h *Lock) learned(how End) pace.Learned {
	if !h.Waited() || how.As != Commit && how.As != Release || h.locker.HoldTimes == nil {
		return pace.Learned{}
	}
	return h.locker.HoldTimes.Get(h.locker.Core.KeyText(h.raw()))
}

// hedge is when it has others beside it.
func (t *Locker) hedge(known pace.Learned) ddb.Hedge {
	return ddb.Hedge{After: late(known, lateTripsEven, lateTripsUneven), Budget: &t.hedges, Lost: max(lostTrips*known.Trip, leastLost)}
}

// late is after how long an answer is late: after so many trips, where they are even.
func late(known pace.Learned, even, uneven float64) time.Duration {
	if known.Uneven() {
		even = uneven
	}
	return time.Duration(even * float64(known.Trip))
}
