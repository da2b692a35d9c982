package transaction

import (
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	const ms = time.Millisecond
	p := pause{least: ms, most: 18 * ms}
	for i, want := range []time.Duration{18 * ms, 6 * ms, 2 * ms, ms} {
		if got := p.bound(); got != want {
			t.Errorf("bound %d: %v, want %v", i, got, want)
		}
	}
	for range impatient - 4 {
		if got := p.bound(); got != ms {
			t.Errorf("the least bound: %v", got)
		}
	}
	for range 3 {
		if got := p.bound(); got != 18*ms {
			t.Errorf("after %d sleeps: %v", impatient, got)
		}
	}
	longest := time.Duration(0)
	for range 1000 {
		longest = max(longest, (&pause{least: ms, most: 18 * ms}).next())
	}
	if longest <= 12*ms || longest > 18*ms { // 1 in 10^176 that all are shorter
		t.Errorf("the longest of 1,000 sleeps: %v", longest)
	}
}
