package fault_test

import (
	"fmt"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
)

func TestCopierDeliversTwiceAndAnswersWithTheSecond(t *testing.T) {
	s := newServer(t)
	c := fault.NewCopier(s.Client())
	between := -1
	c.Twice(fault.Writes, 1, func() { between = s.delivered() })
	for _, body := range []string{"a", "b", "c"} {
		s.call(t, c, "UpdateItem", body)
	}
	s.call(t, c, "GetItem", "d")
	if fmt.Sprint(s.bodies) != "[a b b c d]" || between != 2 {
		t.Errorf("delivered %q, the writes between them after %d", s.bodies, between)
	}
}

func TestCopierKeepsCopies(t *testing.T) {
	s := newServer(t)
	c := fault.NewCopier(s.Client())
	sent := c.Keep(fault.Writes)
	s.call(t, c, "GetItem", "a")
	s.call(t, c, "UpdateItem", "b")
	c.On(nil)
	s.call(t, c, "UpdateItem", "c")
	kept := sent()
	if len(kept) != 1 || kept[0].Op != "UpdateItem" || string(kept[0].Body) != "b" {
		t.Fatalf("kept %v", kept)
	}
	if resp, err := kept[0].Deliver(); err != nil || resp.Body.Close() != nil || fmt.Sprint(s.bodies) != "[a b c b]" {
		t.Errorf("%v, delivered %q", err, s.bodies)
	}
}
