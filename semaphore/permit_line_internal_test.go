package semaphore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/resources"
)

// What a caller that has left the line says of the resource is its own: the line goes on,
// and counts, beside it.
func TestWhatIsSaidOfAResourceWhenALineIsLeft(t *testing.T) {
	s := &Semaphore{cfg: Config{Lease: time.Hour}}
	h := s.newPermit("printer", "p_held", 1, time.Now(), time.Now())
	c := s.join("printer", "p_waits")
	s.took(resources.Row{Name: "printer", Running: 1, Limit: 1, Permits: map[string]resources.Permit{"p_held": {}}}, h)
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
		q := &localQueue{own: map[string]*Permit{}}
		older := resources.Row{Changes: 4, Running: 1, Limit: 1, Permits: map[string]resources.Permit{"p_ended": {}}}
		q.saw(resources.Row{Changes: 5, Limit: 1})
		if q.saw(older); q.seen.Changes != 5 || !q.others.IsZero() {
			t.Errorf("%+v is believed, others since %v", q.seen, q.others)
		}
		time.Sleep(lookAtOwn)
		if q.saw(older); q.seen.Changes != 4 || q.others.IsZero() {
			t.Errorf("%+v is believed, others since %v", q.seen, q.others)
		}
	})
}

// All permits are those of the own process if it has all of them still: only then
// somebody will hear of one that is given back, and asking can wait.
func TestAllPermitsAreThoseOfTheOwnProcess(t *testing.T) {
	s := &Semaphore{cfg: Config{Lease: time.Hour}, lease: lease.Config{Length: time.Hour}}
	mine := s.newPermit("printer", "p_mine", 1, time.Now(), time.Now())
	over := s.newPermit("printer", "p_over", 1, time.Now().Add(-2*time.Hour), time.Now())
	q := &localQueue{own: map[string]*Permit{"p_mine": mine, "p_over": over}}
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
		r := resources.Row{Running: len(c.permits), Limit: c.limit, Permits: map[string]resources.Permit{}}
		for _, attr := range c.permits {
			r.Permits[attr] = resources.Permit{}
		}
		if q.saw(r); q.full.IsZero() == c.want {
			t.Errorf("%s: %v", c.name, q.full)
		}
	}
}
