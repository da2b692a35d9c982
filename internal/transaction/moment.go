package transaction

import "time"

// moment is when the call has read an item, or taken its lock. The zero one is that of
// what is assumed.
type moment struct {
	nth  int64 // later ones have greater ones
	time time.Time
}

func (m moment) assumed() bool { return m.nth == 0 }

// tick is the present moment.
func (c *call) tick() moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moments++
	return moment{c.moments, time.Now()}
}

// stale is the age from which on an item that others may write is read again under a
// lock for which the call has waited so long. A commit that such an item refuses takes
// longer than the read, and all who wait for the lock are behind it.
const stale = 100 * time.Millisecond

// waited notes that the call has waited for a lock since began.
func (c *call) waited(began time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(began) > stale {
		c.old = now.Add(-stale)
	}
}

// stale reports whether the item is to be read again although it is known, before the
// closure sees it.
func (e *entry) stale(c *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !e.seen && e.turn == nil && !e.moment.assumed() && e.moment.time.Before(c.old)
}
