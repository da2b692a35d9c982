package lockedread

import "time"

// SetClock gives a locker a clock of its own, for tests of clocks that differ.
func (l *Locker[T]) SetClock(now func() time.Time) { l.taker.Clock = now }

// Ahead is a clock that runs ahead of the real one (or behind it).
func Ahead(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}
