package delegate

import (
	"strings"
	"testing"
)

// What becomes of a sender's slot with its next number: one whose partition is throttled goes
// on under its name in any other, one that does not know what became of the last begins anew.
func TestTheSlotOfTheNextNumber(t *testing.T) {
	for name, c := range map[string]struct {
		before place
		name   bool // it stays
		seq    int64
	}{
		"the first":                 {place{}, false, 1},
		"as before":                 {place{slot: "0.me", shards: 8, seq: 6, settled: true}, true, 7},
		"throttled":                 {place{slot: "0.me", shards: 8, seq: 6, settled: true, throttled: true}, true, 7},
		"throttled, and in doubt":   {place{slot: "0.me", shards: 8, seq: 6, throttled: true}, false, 1},
		"in doubt":                  {place{slot: "0.me", shards: 8, seq: 6}, false, 1},
		"there are more of them":    {place{slot: "0.me", shards: 4, seq: 6, settled: true}, false, 1},
		"more, and it is throttled": {place{slot: "0.me", shards: 4, seq: 6, settled: true, throttled: true}, false, 1},
	} {
		l, b, partitions := &line{place: c.before}, &batch{}, map[int]bool{}
		for range 100 {
			l.place, b = c.before, &batch{}
			l.number(b, "life", 8)
			partitions[shardOf(l.slot)] = true
			if strings.HasSuffix(l.slot, ".me") != c.name || b.seq != c.seq || l.seq != c.seq || l.throttled || l.shards != 8 {
				t.Fatalf("%s: slot %s of %d, number %d", name, l.slot, l.shards, b.seq)
			}
		}
		if moves := len(partitions) > 1; moves != (name != "as before") {
			t.Errorf("%s: it was in %d partitions", name, len(partitions))
		}
	}
}
