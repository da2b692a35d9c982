//go:build unix

package main

import (
	"bytes"
	"flag"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
)

var (
	killRounds = flag.Int("killrounds", 1, "rounds of TestKilledAndPausedDispatchers")
	killSeed   = flag.Uint64("killseed", 0, "seed of its kills and pauses; 0: a new one")
)

// TestKilledAndPausedDispatchers kills dispatchers at any moment, and stops
// others for longer than a lease. Nothing is lost, no limit is exceeded, and
// the counters are right.
func TestKilledAndPausedDispatchers(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	var kills, pauses, late int
	n := rig.Share(30, 64)
	for round := range *killRounds {
		rng := mathrand.New(mathrand.NewPCG(seed, uint64(round))) // repeatable on purpose
		dead := map[string]bool{}
		var last *office
		s := settings{dispatchers: 6, n: n, lease: time.Second, disturb: func(o *office, e event) {
			last = o
			switch n := rng.IntN(16); {
			case dead[e.Who] || e.Who == o.paused.Who:
			case n == 0 && len(dead) < 4:
				o.slay(e)
				dead[e.Who] = true
				kills++
			case n <= 3 && o.paused.Who == "" && e.Kind == began:
				o.halt(e)
				pauses++
			}
		}}
		var out, errs bytes.Buffer
		if err := demonstrate(t.Context(), s, &out, &errs); err != nil {
			t.Errorf("round %d, -killseed=%d: %v\n%s%s", round, seed, err, &out, &errs)
			continue
		}
		if last == nil {
			t.Errorf("round %d, -killseed=%d: nothing was heard before all was done, so nobody was disturbed: it proves nothing\n%s", round, seed, &out)
			continue
		}
		late += last.late
		if !strings.Contains(out.String(), "none lost") {
			t.Errorf("round %d: no verdict\n%s", round, &out)
		}
	}
	t.Logf("%d kills, %d pauses, %d late writes refused (-killseed=%d)", kills, pauses, late, seed)
}
