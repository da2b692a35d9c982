package ticket

import "time"

// SetClock gives a queue a clock of its own, for tests of clocks that differ.
func (q *Queue) SetClock(now func() time.Time) { q.clock = now }
