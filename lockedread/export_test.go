package lockedread

import "time"

// SetClock gives a locker a clock that runs ahead of the real one, or behind.
func (l *Locker[T]) SetClock(ahead time.Duration) {
	l.l.line.Clock = func() time.Time { return time.Now().Add(ahead) }
}
