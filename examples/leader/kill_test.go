//go:build unix

package main

import (
	"bytes"
	"flag"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
)

var (
	killRounds = flag.Int("killrounds", 1, "rounds of TestKilledAndPausedLeaders")
	killSeed   = flag.Uint64("killseed", 0, "seed of its kills and pauses; 0: a new one")
)

// TestKilledAndPausedLeaders kills leaders, and stops others for longer than a
// lease, at any moment. Lines never interleave, and none is lost.
func TestKilledAndPausedLeaders(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	var kills, pauses, late, lines int
	enough := rig.Share(20, 40)
	for round := range *killRounds {
		rng := mathrand.New(mathrand.NewPCG(seed, uint64(round))) // repeatable on purpose
		dead, n := map[string]bool{}, 0
		s := settings{candidates: 5, lease: time.Second, disturb: func(d *drama, e event) {
			if d.paused != nil && e.Who == d.paused.who && e.Kind == lost {
				d.paused = nil
			}
			if d.over || len(d.terms) == 0 {
				return
			}
			now := d.terms[len(d.terms)-1]
			if e.Kind == wrote {
				n++
			}
			if d.paused != nil && d.paused != now && e.Kind == wrote && e.Token == now.token {
				if !d.resumed {
					d.wake()
				}
				return
			}
			switch dice := rng.IntN(12); {
			case n >= enough && d.late > 0 && len(dead) > 0:
				d.over = true
				late, lines = late+d.late, lines+n
				d.stop()
			case e.Kind != wrote && e.Kind != elected || e.Token != now.token || dead[now.who] || d.paused != nil:
			case len(dead) < 3 && (dice == 0 || n > enough && len(dead) == 0):
				d.slay(now)
				dead[now.who] = true
				kills++
			case dice <= 2 || n > enough:
				d.halt(now)
				pauses++
			}
		}}
		var out, errs bytes.Buffer
		if err := demonstrate(t.Context(), s, &out, &errs); err != nil {
			t.Errorf("round %d, -killseed=%d: %v\n%s%s", round, seed, err, &out, &errs)
		}
	}
	t.Logf("%d kills, %d pauses, %d late writes refused, %d lines (-killseed=%d)", kills, pauses, late, lines, seed)
}
