package semaphore

import "time"

// SetClock gives a semaphore a clock that runs ahead of the real one, or behind.
func (s *Semaphore[J]) SetClock(ahead time.Duration) {
	s.clock = func() time.Time { return time.Now().Add(ahead) }
}

// Lines is for how many resources callers of a semaphore have a permit, or wait.
func (s *Semaphore[J]) Lines() int {
	s.linesMu.Lock()
	defer s.linesMu.Unlock()
	return len(s.lines)
}

// JudgeGone is what a release that finds its permit gone says of it, for the model: given,
// or lost, or neither.
func JudgeGone(passed, told, silent, expired bool) (isGiven, isLost bool) {
	v := judgeGone(passed, told, silent, expired)
	return v == given, v == lostBefore
}
