package jobs

import "time"

// SetClock gives a queue a clock that runs ahead of the real one, or behind.
func (q calls) SetClock(ahead time.Duration) {
	q.s.table.Clock = func() time.Time { return time.Now().Add(ahead) }
}
