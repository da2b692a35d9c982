package mutex

import "time"

// SetClock gives a locker a clock that runs ahead of the real one, or behind.
func (l *Locker) SetClock(ahead time.Duration) {
	l.taker.Clock = func() time.Time { return time.Now().Add(ahead) }
}

// Waiting is how many callers of a locker stand in line for a name.
func (l *Locker) Waiting(name any) int {
	_, raw, err := l.key(name)
	if err != nil {
		panic(err)
	}
	return l.line.Waiting(raw)
}

// Lines is how many lines a locker has.
func (l *Locker) Lines() int { return l.line.Keys() }

// Over reports whether a hold has ended, or is known to be lost.
func (l *Lock) Over() bool { return l.hold.Over() }
