package transaction

import (
	"sync/atomic"
	"testing"
	"time"
)

const ms = time.Millisecond

// The bound follows how often transactions are refused at the items, what a try costs,
// and who has been refused more often than others.
func TestPauseBound(t *testing.T) {
	for name, row := range map[string]struct {
		at    situation
		taken int
		want  time.Duration
	}{
		"nobody was refused lately":             {situation{}, 0, ms},
		"seldom":                                {situation{usual: 2}, 0, 8 * ms},
		"often":                                 {situation{usual: 3}, 0, 18 * ms},
		"always, as others tell":                {situation{usual: 40}, 0, 21125 * time.Microsecond},
		"always, in this call too":              {situation{usual: 40, tries: 56}, 0, 90 * ms},
		"often in this call alone":              {situation{usual: 1, tries: 32}, 0, 32 * ms},
		"not much oftener in this call":         {situation{usual: 3, tries: 20}, 0, 18 * ms},
		"reading two items":                     {situation{usual: 2, reading: 2}, 0, 8 * ms},
		"reading six":                           {situation{usual: 2, reading: 6}, 0, 24 * ms},
		"as often as is usual":                  {situation{usual: 2}, 4, 8 * ms},
		"more often than is usual":              {situation{usual: 2}, 5, 3200 * time.Microsecond},
		"the same where all are always":         {situation{usual: 40, tries: 81}, 81, 36 * ms},
		"much more often":                       {situation{usual: 2}, 80, 90 * ms},
		"much more often where it is usual":     {situation{usual: 17, tries: 84}, 84, 36 * ms},
		"much more often with others behind it": {situation{usual: 2, followed: true}, 80, 90 * ms},
		"with others behind it":                 {situation{usual: 40, reading: 6, followed: true}, 0, 2 * ms},
	} {
		p := pause{least: ms, most: 90 * ms, taken: row.taken}
		if got := p.bound(row.at); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		if p.taken != row.taken+1 {
			t.Errorf("%s: %d sleeps are counted", name, p.taken)
		}
	}
}

// Sleeps are spread from nothing up to the bound.
func TestPauseIsRandom(t *testing.T) {
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		d := (&pause{least: ms, most: 90 * ms}).next(situation{usual: 9, tries: 72})
		shortest, longest = min(shortest, d), max(longest, d)
	}
	if shortest > 30*ms || longest < 60*ms || longest > 90*ms { // by chance: 1 in 10^176
		t.Errorf("1,000 sleeps are between %v and %v", shortest, longest)
	}
}

// What is usual follows what happens to some ten calls, and one says little.
func TestLearn(t *testing.T) {
	var usual atomic.Uint64
	if learn(&usual, 8); usualOf(&usual) != 0.25 {
		t.Errorf("one call makes it %v", usualOf(&usual))
	}
	for range 200 {
		learn(&usual, 6)
	}
	if got := usualOf(&usual); got < 5.9 || got > 6 {
		t.Errorf("after 200 calls with 6 refusals each it is %v", got)
	}
	if learn(&usual, 500); usualOf(&usual) > 7.1 {
		t.Errorf("one call behind a stalled request makes it %v", usualOf(&usual))
	}
}
