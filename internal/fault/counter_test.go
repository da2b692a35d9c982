package fault_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
)

func TestCounter(t *testing.T) {
	s := newServer(t)
	c := fault.NewCounter(s.Client())
	var done sync.WaitGroup
	for i := range 30 {
		done.Go(func() {
			op := "UpdateItem"
			if i%3 == 0 {
				op = "GetItem"
			}
			s.call(t, c, op, fmt.Sprint(i))
		})
	}
	done.Wait()
	want := map[string]int{"UpdateItem": 20, "GetItem": 10}
	if got := c.Counts(); !maps.Equal(got, want) || c.Total() != 30 || c.Count("GetItem") != 10 || c.Count("DeleteItem") != 0 || s.delivered() != 30 {
		t.Errorf("counts %v, total %d, delivered %d", got, c.Total(), s.delivered())
	}
	c.Reset()
	if c.Total() != 0 || len(c.Counts()) != 0 {
		t.Errorf("after Reset %v", c.Counts())
	}
}

func TestCounterShowsRequestsBeforeTheyAreSent(t *testing.T) {
	s := newServer(t)
	c := fault.NewCounter(s.Client())
	var seen []string
	c.OnRequest(func(op string, body []byte) {
		seen = append(seen, fmt.Sprintf("%s %s: %d counted, %d delivered", op, body, c.Count(op), s.delivered()))
	})
	s.call(t, c, "UpdateItem", "a")
	s.call(t, c, "UpdateItem", "b")
	c.OnRequest(nil)
	s.call(t, c, "UpdateItem", "c")
	want := []string{"UpdateItem a: 1 counted, 0 delivered", "UpdateItem b: 2 counted, 1 delivered"}
	if fmt.Sprint(seen) != fmt.Sprint(want) || fmt.Sprint(s.bodies) != "[a b c]" {
		t.Errorf("saw %q, delivered %q", seen, s.bodies)
	}
}
