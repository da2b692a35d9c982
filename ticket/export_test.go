package ticket

import "time"

// SetClock gives a queue a clock that runs ahead of the real one, or behind.
func (q *Queue) SetClock(ahead time.Duration) {
	q.clock = func() time.Time { return time.Now().Add(ahead) }
}

// Groups is in how many queues somebody of this process stands, or is about to.
func (q *Queue) Groups() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.groups)
}
