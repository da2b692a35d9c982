package protocol

import (
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/recent"
)

// pulse is what a process knows of how fast a table is, and of where others write.
type pulse struct {
	raced *recent.Memory[time.Time] // by item: when others last wrote first

	mu     sync.Mutex
	writes pace.Forecast // guarded by mu: how long they take, there and back
}

const (
	lateTrips = 3 // whose answer takes so many trips is late
	racedKept = 1_000
	racedFor  = 10 * time.Second // longer than what stalls takes
)

// Took notes how long a write took.
func (c *Core) Took(trip time.Duration) {
	c.pulse.mu.Lock()
	defer c.pulse.mu.Unlock()
	c.pulse.writes.Took(trip)
}

// Late is how long an answer takes at least that is late; 0: nobody knows.
func (c *Core) Late() time.Duration {
	c.pulse.mu.Lock()
	defer c.pulse.mu.Unlock()
	return lateTrips * c.pulse.writes.Trip
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
