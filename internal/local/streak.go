package local

import "time"

// streak counts how long the lock has been in this process.
type streak struct {
	handoffs  int
	since     time.Time
	contended bool // other processes wanted the item when the lock was taken
}

// over reports whether the lock may not be passed on once more, where that is done
// contended times while others want it. held is how long the streak has lasted.
func (c streak) over(held, lease time.Duration, contended int) bool {
	limit := handoffsAlone
	if c.contended {
		limit = contended
	}
	return c.handoffs >= limit || lease > 0 && held >= lease/streakOfLease
}

// standsBack reports whether a process that has let the lock go stays away from it for a
// moment: others are known to want it, and had to wait for a whole streak.
func (c streak) standsBack(held, lease time.Duration) bool {
	return c.contended && c.over(held, lease, handoffsContended)
}

// handed is the streak when the turn is passed on.
func (c streak) handed() streak {
	c.handoffs++
	return c
}
