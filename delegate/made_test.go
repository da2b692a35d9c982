package delegate_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// A leader stands still behind its write, until others have covered its traces in the ring
// of the item. What the item says of its slot is the verdict: what it had for itself is not
// carried out again.
func TestALeaderThatStoodStillFindsItsWrite(t *testing.T) {
	b, other := withList(t)
	change := func() { // each a process: its own ids it would forget
		p := start(t, b.Client, b.Table)
		rig.Must(p.items.Update(t.Context(), key, func(_ context.Context, l *list) error { l.Others++; return nil }))(t)
	}
	client, copier := rig.Copied()
	var writes, stood atomic.Int64
	on := make(chan struct{})
	copier.On(func(one *fault.Copy) (*http.Response, error) {
		switch {
		case one.Op == "GetItem" && stood.Load() == 1:
			<-on
			return nil, nil
		case one.Op != "UpdateItem":
			return nil, nil
		case writes.Add(1) == 1: // of who is alone: it finds that it is not
			change()
			return nil, nil
		case !strings.Contains(string(one.Body), `"lead"`) || stood.Add(1) != 1:
			return nil, nil
		}
		answer, err := one.Deliver()
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		for range 12 {
			change()
		}
		close(on)
		return nil, errors.New("connection reset")
	})
	leader := start(t, client, b.Table)
	n, err := leader.add.Do(t.Context(), key, "once")
	rig.Is(t, err)
	rig.Is(t, leader.all.Close(t.Context()))
	got := rig.Must(other.items.Get(t.Context(), key))(t)
	if n != 1 || len(got.Ops) != 1 || got.Others != 13 || stood.Load() == 0 {
		t.Errorf("told %d; %+v", n, got)
	}
}
