package semaphore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/lease"
)

// What a caller that has left the line says of the resource is its own: the line goes on,
// and counts, beside it.
func TestWhatIsSaidOfAResourceWhenALineIsLeft(t *testing.T) {
	s := &store{cfg: Config{Lease: time.Hour}}
	h := s.newPermit("printer", "p_held", 1, time.Now(), time.Now())
	c := s.join("printer", "p_waits")
	s.took(Resource{Name: "printer", Running: 1, Limit: 1, permits: map[string]ending{"p_held": {}}}, h)
	c.leaves()
	s.dropped(h)
	if said := c.busy().Error(); said != `resource "printer" is busy: 1 running, its limit is 1` {
		t.Error(said)
	}
}

// An answer that was overtaken on its way says nothing of others; after a while it is
// believed all the same, for the row may have been made anew.
func TestAnAnswerThatWasOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &permitLine{own: map[string]*Permit{}}
		older := Resource{changes: 4, Running: 1, Limit: 1, permits: map[string]ending{"p_ended": {}}}
		l.saw(Resource{changes: 5, Limit: 1})
		if l.saw(older); l.seen.changes != 5 || !l.others.IsZero() {
			t.Errorf("%+v is believed, others since %v", l.seen, l.others)
		}
		time.Sleep(lookAtOwn)
		if l.saw(older); l.seen.changes != 4 || l.others.IsZero() {
			t.Errorf("%+v is believed, others since %v", l.seen, l.others)
		}
	})
}

// All permits are those of the own process if it has all of them still: only then
// somebody will hear of one that is given back, and asking can wait.
func TestAllPermitsAreThoseOfTheOwnProcess(t *testing.T) {
	s := &store{cfg: Config{Lease: time.Hour}, lease: lease.Config{Length: time.Hour}}
	mine := s.newPermit("printer", "p_mine", 1, time.Now(), time.Now())
	over := s.newPermit("printer", "p_over", 1, time.Now().Add(-2*time.Hour), time.Now())
	l := &permitLine{own: map[string]*Permit{"p_mine": mine, "p_over": over}}
	for _, c := range []struct {
		name    string
		limit   int
		permits []string
		want    bool
	}{
		{"own", 1, []string{"p_mine"}, true},
		{"one is free", 2, []string{"p_mine"}, false},
		{"one is another's", 2, []string{"p_mine", "p_theirs"}, false},
		{"one is over", 2, []string{"p_mine", "p_over"}, false},
	} {
		r := Resource{Running: len(c.permits), Limit: c.limit, permits: map[string]ending{}}
		for _, attr := range c.permits {
			r.permits[attr] = ending{}
		}
		if l.saw(r); l.full.IsZero() == c.want {
			t.Errorf("%s: %v", c.name, l.full)
		}
	}
}
