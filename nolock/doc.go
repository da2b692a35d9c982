// Package nolock is the strategy "event time": a write happens if its event is
// later than the stored one. No read, no lock, one request.
//
//	parcels, err := nolock.New(table, nolock.Config{})
//	if err != nil {
//		return err
//	}
//	err = parcels.Put(ctx, parcel{ID: "p1", Place: "depot", Seen: seen}) // repo.ErrStale if a later one is there
//
// Choose it where items mirror events that carry their own time and may arrive
// twice or out of order, such as status messages from a queue: the latest event
// wins, older ones are dropped.
//
// # Protocol
//
// A write demands that the stored event time (the field tagged repo:"eventtime")
// is absent, or smaller, or equal with a smaller event id (repo:"eventid"), and
// that nobody holds the item's lock. If it fails on an equal pair it is a
// redelivered duplicate and counts as done; on a larger one it is stale. That
// also judges a write whose answer was lost; where it cannot (a lock stands in
// the way, or others wrote over it), the call ends in ErrOutcomeUnknown. An equal time without event ids
// counts as the same event.
//
// Delete leaves a tombstone: the event time stays, so that a late older event
// cannot bring the item back. Readers do not see it, and a TTL removes it. What a
// tombstone has kept because the deleting program did not know it goes with the
// event that brings the item back.
//
// Update reads, changes and writes under the condition that event time, event
// id, the ids of the latest writers and the lock's last token are as read, so
// it loses nothing either.
//
// Event times are integers of any unit other than 0, which means "not set", or whole Unix seconds (a time with a
// fraction is refused): never floats, never text. Choose a unit so fine that an
// item has one event per step, or tell events apart by an id. Timestamp ordering
// is described by Bernstein and Goodman, "Concurrency Control in Distributed
// Database Systems" (1981), as the Thomas write rule.
package nolock
