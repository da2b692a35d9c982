package delegate_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// All commands of a round have ids of their own, more than the item has room for, and the
// first writes that would carry them are lost: each is applied once in the end, however
// often it comes, and the item stays small.
func TestIDsOfCommandsAtAnyRate(t *testing.T) {
	const each, rounds = 150, 3
	b := rig.New(t)
	p := open(t, b)
	rig.Must(p.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: each * rounds}))(t)
	all := func(round int, want error) {
		var calls sync.WaitGroup
		for i := range each {
			calls.Go(func() {
				for known := true; ; {
					_, err := p.take.Once(fmt.Sprint(round, " ", i)).Do(t.Context(), apple, take{1})
					switch {
					case errors.Is(err, repo.ErrOutcomeUnknown):
						known = false
						continue
					case errors.Is(err, delegate.ErrRepeated) && !known: // it was applied
					case !errors.Is(err, want):
						t.Errorf("round %d, %d: %v, want %v", round, i, err, want)
					}
					return
				}
			})
		}
		calls.Wait()
	}
	for round := range rounds {
		var lost atomic.Int64
		b.Faults(func(op string, _ int, body []byte) fault.Kind {
			if op == "UpdateItem" && len(body) > 64*16 && lost.Add(1) <= 20 {
				return fault.DropRequest
			}
			return fault.None
		})
		all(round, nil)
		if lost.Load() == 0 {
			t.Error("no write of a round was lost")
		}
	}
	b.Faults(nil)
	for round := range rounds {
		all(round, delegate.ErrRepeated)
	}
	if left := p.stock(t); left != 0 {
		t.Errorf("%d are left", left)
	}
}
