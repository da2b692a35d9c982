package optimistic_test

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// An item that has lain for longer than it ever proved true for is read again: others may
// have written it more often since than its recent writers tell, and a write that begins
// from it would be neither applied nor known not to be.
func TestAWarmItemIsBelievedForAsLongAsItProvedTrue(t *testing.T) {
	for name, c := range map[string]struct {
		others int           // changes of others meanwhile
		after  time.Duration // since the last change
		reads  int
	}{
		"at once":                      {0, 0, 0},
		"for as long as before":        {0, time.Second, 0},
		"for longer":                   {0, time.Hour, 1},
		"others wrote many times":      {20, time.Hour, 1},
		"others wrote once, in a blow": {1, 0, 0}, // a refused write tells
	} {
		t.Run(name, func(t *testing.T) {
			b := rig.New(t)
			b.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
				count := fault.NewCounter(network)
				table := rig.Must(repo.NewTable[customer](rig.Client(rig.Over(count)), b.Table, repo.TableConfig{}))(t)
				rig.Is(t, table.EnsureTable(t.Context()))
				warm := rig.Must(optimistic.New(table, optimistic.Config{Warm: 2}))(t)
				elsewhere := rig.Must(repo.NewTable[customer](rig.Client(rig.Over(network)), b.Table, repo.TableConfig{}))(t)
				other := rig.Must(optimistic.New(elsewhere, optimistic.Config{}))(t)
				rig.Must(warm.Create(t.Context(), customer{ID: "c1"}))(t)
				const changes = 3
				for range changes {
					time.Sleep(time.Second) // in virtual time
					rig.Must(warm.Update(t.Context(), key, addOrder))(t)
				}
				for range c.others {
					rig.Must(other.Update(t.Context(), key, addOrder))(t)
				}
				time.Sleep(c.after)
				count.Reset()
				got := rig.Must(warm.Update(t.Context(), key, addOrder))(t)
				if want := changes + c.others + 1; got.Orders != want || count.Count("GetItem") != c.reads {
					t.Errorf("%d orders after %d reads, want %d and %d", got.Orders, count.Count("GetItem"), want, c.reads)
				}
			})
		})
	}
}
