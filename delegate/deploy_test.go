package delegate_test

import (
	"context"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/rig"
)

// Programs that do not know a command run beside one that does: they leave it to its
// caller, whoever leads, and nothing is lost.
func TestProgramsThatDoNotKnowACommand(t *testing.T) {
	b := rig.New(t)
	const old, each = 4, 15
	first := open(t, b)
	rig.Must(first.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: old * each}))(t)
	var all sync.WaitGroup
	for range old {
		p := open(t, b.Peer())
		all.Go(func() {
			for range each {
				if _, err := p.take.Do(t.Context(), apple, take{1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	fresh := open(t, b.Peer())
	put := rig.Must(delegate.Command(fresh.all, "put/v2", func(_ context.Context, p *product, n int) (int, error) {
		p.Stock += n
		return p.Stock, nil
	}))(t)
	all.Go(func() {
		for range each {
			if _, err := put.Do(t.Context(), apple, 2); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if got := first.stock(t); got != 2*each {
		t.Errorf("%d are left, %d were put", got, 2*each)
	}
}
