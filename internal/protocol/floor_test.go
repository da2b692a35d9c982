package protocol

import (
	"testing"
	"time"
)

// Two takers in turn of a key whose row is deleted between them, who have both seen its
// holder before, get tokens that grow, however short the holds were.
func TestTokensOfShortLivesGrow(t *testing.T) {
	began := time.UnixMicro(1_700_000_000_000_000)
	seen := began.UnixMicro()
	last := seen
	for _, after := range []time.Duration{3 * time.Millisecond, 6 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		floor := (&Acquire{Now: began.Add(after), Seen: seen}).Floor()
		if floor <= last {
			t.Errorf("after %v: %d after %d", after, floor, last)
		}
		last = floor
	}
	// A holder whose clock is ahead is passed all the same, as another life is.
	if floor := (&Acquire{Now: began.Add(-time.Hour), Seen: seen}).Floor(); floor <= seen+lifeSpan {
		t.Errorf("by a clock that is behind: %d after %d", floor, seen)
	}
}
