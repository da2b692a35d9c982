package lease

import "time"

// maxMargin bounds what is taken off a lease.
const maxMargin = time.Second

// Margin is taken off the end of a lease for its keeper's own deadline.
func Margin(length time.Duration) time.Duration { return min(length/10, maxMargin) }

// Until is when its keeper must stop, on its own clock; zero if there is no
// end.
func (l *Lease) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Length > 0 && l.cfg.Jumps {
		return l.deadline().Round(0).Add(l.ahead)
	}
	return l.deadline()
}

// Left is how long it is until then, for one that has an end.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left()
}

// left is Left. The caller holds mu.
func (l *Lease) left() time.Duration {
	left := time.Until(l.deadline())
	if l.cfg.Jumps {
		left = min(left, l.deadline().Add(l.ahead).Sub(l.cfg.Clock()))
	}
	return left
}

// deadline is Until by the machine's clock. The caller holds mu.
func (l *Lease) deadline() time.Time {
	if l.cfg.Length == 0 {
		return time.Time{}
	}
	return l.end.Add(-Margin(l.cfg.Length))
}

// Expired reports whether the deadline has passed.
func (l *Lease) Expired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed()
}

// passed is Expired. The caller holds mu.
func (l *Lease) passed() bool {
	return l.cfg.Length > 0 && (passed(l.deadline()) || l.cfg.Jumps && l.left() <= 0)
}

// passed reports whether a deadline has passed. Go's monotonic clock stands
// still while a machine is suspended and wall clocks can be set back: the
// keeper believes whichever says that more time has passed.
func passed(until time.Time) bool {
	now := time.Now()
	return !now.Before(until) || !now.Round(0).Before(until.Round(0))
}
