package protocol

import (
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/recent"
)

// pulse is what a process knows of how fast a table is, and of where others write.
type pulse struct {
	trip  atomic.Int64              // how long a write takes, there and back; 0: not known
	raced *recent.Memory[time.Time] // by item: when others last wrote first
}

const (
	lateTrips = 4 // whose answer takes so many trips is late
	racedKept = 1_000
	racedFor  = 10 * time.Second // longer than most stalls

	// eightWrites is how long as many of one item take at least, by what a partition lets
	// through: sooner nothing has gone out of sight.
	eightWrites = 8 * time.Millisecond
)

// Took notes how long a write took. The estimate falls fast and rises slowly: one that took
// long says little of the next. What another one notes at this moment may be lost.
func (c *Core) Took(d time.Duration) {
	switch trip := time.Duration(c.pulse.trip.Load()); {
	case trip == 0:
		c.pulse.trip.Store(int64(d))
	case d < trip:
		c.pulse.trip.Store(int64(trip - (trip-d)/4))
	default:
		c.pulse.trip.Store(int64(trip + (min(d, 2*trip)-trip)/16))
	}
}

// Late is how long an answer takes at least that is late; 0: nobody knows.
func (c *Core) Late() time.Duration {
	trip := time.Duration(c.pulse.trip.Load())
	if trip == 0 {
		return 0
	}
	return max(lateTrips*trip, eightWrites)
}

// Raced notes that others wrote first at an item.
func (c *Core) Raced(key ddb.Item) {
	c.pulse.raced.Change(c.KeyText(key), func(time.Time) (time.Time, bool) { return time.Now(), true })
}

// IsRaced reports whether others wrote first there a while ago: then eight of their
// writes, which put an id out of sight, may come while one request is under way.
func (c *Core) IsRaced(key ddb.Item) bool {
	at := c.pulse.raced.Get(c.KeyText(key))
	return !at.IsZero() && time.Since(at) < racedFor
}
