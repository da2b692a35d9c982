package semaphore

import "time"

// SetClock gives a semaphore a clock that runs ahead of the real one, or behind.
func (s *Semaphore[J]) SetClock(ahead time.Duration) {
	s.store.clock = func() time.Time { return time.Now().Add(ahead) }
}
