package transaction

import (
	"math/rand/v2"
	"time"
)

// pause is how long a transaction sleeps between two commits that others refused.
//
// The bound of the random sleep shrinks from one to the next, so that who has lost
// often is back before who comes: the slowest take about two thirds of the time that
// they take with one bound for all, and fewer are at the items for the second time when
// somebody comes for the first. With a bound that grows, as elsewhere, who has lost
// often goes on losing.
type pause struct {
	least, most time.Duration
	taken       int
}

// Each bound is a third of the one before. After as many sleeps as impatient the bound
// is the greatest one for good: where so many were in vain, the items are too wanted
// for all, and each commit more takes from what their partition can do.
const (
	shrink    = 3
	impatient = 14
)

// next is the length of the next sleep.
func (p *pause) next() time.Duration {
	return time.Duration(rand.Int64N(int64(p.bound()) + 1))
}

// bound is that of the next sleep, which it counts.
func (p *pause) bound() time.Duration {
	bound := p.most
	if p.taken < impatient {
		for range p.taken {
			bound /= shrink
		}
		p.taken++
	}
	return max(bound, p.least)
}
