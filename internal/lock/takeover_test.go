package lock

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// TestTakeoversComeInOrder: whoever looked in time takes over a step before
// those behind it, whenever in the time between two looks each of them saw the
// hold first.
func TestTakeoversComeInOrder(t *testing.T) {
	const parts = 4 // of the time between two looks
	made := time.Now()
	for name, cfg := range map[string]Config{
		"by watching": {Lease: 30 * time.Second, Clockless: true},
		"by clocks":   {Lease: 30 * time.Second},
		"either":      {Lease: 30 * time.Second, Skew: 10 * time.Second},
	} {
		hold := stored.Record{By: stored.NextID("AAAA"), Timed: true, Held: 1, Token: 2, Lease: cfg.grace(), Until: made.Add(cfg.grace() + 2*cfg.Skew)}
		// takes is when one with so many ahead takes over, who saw the hold late.
		takes := func(ahead int, late time.Duration) time.Duration {
			seen := made.Add(late)
			q := &queued{lastNotMine: seen.Add(-cfg.glance()), acquiring: &acquiring{locker: &Locker{Config: cfg}, Waiter: Waiter{
				Settings: Settings{Skew: cfg.Skew, Clock: func() time.Time { return seen }}}}}
			q.observed = observation{seen: ddb.Item{}, since: seen, lease: hold.Lease}
			q.firstSeen = q.appearance(hold, seen)
			return late + q.remaining(hold, ahead, seen)
		}
		for ahead := range 6 {
			for a := range parts + 1 {
				for b := range parts + 1 {
					before, after := takes(ahead, time.Duration(a)*cfg.glance()/parts), takes(ahead+1, time.Duration(b)*cfg.glance()/parts)
					if after-before < cfg.step()-time.Millisecond {
						t.Errorf("%s: with %d ahead after %v, the next one after %v", name, ahead, before, after)
					}
					if least := cfg.grace(); before < least {
						t.Errorf("%s: with %d ahead after %v, within the grace", name, ahead, before)
					}
				}
			}
		}
		if last, most := takes(20, cfg.glance()), cfg.grace()+cfg.glance()+20*cfg.step(); last > most+time.Millisecond {
			t.Errorf("%s: behind 20 of the dead after %v, want %v", name, last, most)
		}
	}
}
