package txn_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Two items of a table without transactions are refused, by its name; one is as
// good as anywhere.
func TestAGlobalTableWithStrongConsistency(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(rig.Must(repo.NewTable[counted](rig.Strong{Client: w.Client}, w.Table+"-o", repo.TableConfig{}))(t), optimistic.Config{}))(t)
	create := func(ids ...string) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for _, id := range ids {
				if _, err := r.In(tx).Create(ctx, counted{ID: w.id(id)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	rig.Is(t, create("a"))
	err := create("b", "c")
	rig.Is(t, err, repo.ErrSchema)
	if err == nil || !strings.Contains(err.Error(), "global table with strong consistency") || !strings.Contains(err.Error(), w.Table) {
		t.Errorf("error %v", err)
	}
}
