package suite

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the fault schedules; 0: a new one")

// Seed is the seed of a test's faults; a run that fails tells how to repeat it.
func Seed(t testing.TB) uint64 {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with -seed=%d", s)
		}
	})
	return s
}
