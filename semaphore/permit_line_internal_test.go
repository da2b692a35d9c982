package semaphore

import (
	"testing"
	"time"
)

// What a caller that has left the line says of the resource is its own: the line goes on,
// and counts, beside it.
func TestWhatIsSaidOfAResourceWhenALineIsLeft(t *testing.T) {
	s := &store{cfg: Config{Lease: time.Hour}}
	h := s.newPermit("printer", "p_held", 1, time.Now(), time.Now())
	c := s.join("printer", "p_waits")
	s.took(Resource{Name: "printer", Running: 1, Limit: 1, permits: map[string]ending{"p_held": {}}}, h)
	s.leaves("printer", c)
	s.dropped(h)
	if said := c.busy("printer").Error(); said != `resource "printer" is busy: 1 running, its limit is 1` {
		t.Error(said)
	}
}
