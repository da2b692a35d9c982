package semaphore

import "time"

// SetClock gives a semaphore a clock that runs ahead of the real one, or behind.
func (s *Semaphore) SetClock(ahead time.Duration) {
	s.table.Clock = func() time.Time { return time.Now().Add(ahead) }
}

// LocalQueues is for how many resources callers of a semaphore have a permit, or wait.
func (s *Semaphore) LocalQueues() int {
	s.queuesMu.Lock()
	defer s.queuesMu.Unlock()
	return len(s.queues)
}
