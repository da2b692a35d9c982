package repo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// A global table with strong consistency has neither transactions nor TTL. What
// needs neither works there without asking for them; the rest is refused, not
// left to fail at its first write.
func TestGlobalTables(t *testing.T) {
	type plain struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	type dated struct {
		ID string `dynamodbav:"id" repo:"pk"`
		At int64  `dynamodbav:"at" repo:"eventtime"`
	}
	type sorted struct {
		ID  string `dynamodbav:"id" repo:"pk"`
		Day string `dynamodbav:"day" repo:"sk"`
	}
	strong, eventual := types.MultiRegionConsistencyStrong, types.MultiRegionConsistencyEventual
	ensure := func(table interface{ EnsureTable(context.Context) error }, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		return table.EnsureTable(t.Context())
	}
	plainIn := func(c rig.Described) error {
		table, err := repo.NewTable[plain](c, "table", repo.TableConfig{})
		return ensure(table, err)
	}
	sortedIn := func(c rig.Described) error {
		table, err := repo.NewTable[sorted](c, "table", repo.TableConfig{})
		return ensure(table, err)
	}
	datedIn := func(c rig.Described) error {
		table, err := repo.NewTable[dated](c, "table", repo.TableConfig{})
		return ensure(table, err)
	}
	for name, c := range map[string]struct{ err, want error }{
		"items, strong":            {plainIn(rig.GlobalTable(strong, "id")), nil},
		"items, eventual":          {plainIn(rig.GlobalTable(eventual, "id")), repo.ErrSchema},
		"items, not said":          {plainIn(rig.GlobalTable("", "id")), repo.ErrSchema},
		"events, strong":           {datedIn(rig.GlobalTable(strong, "id")), repo.ErrSchema},
		"another key, as anywhere": {plainIn(rig.GlobalTable(strong, "key")), repo.ErrSchema},
		"a sort key":               {sortedIn(rig.GlobalTable(strong, "id", "day")), nil},
		"another sort key":         {sortedIn(rig.GlobalTable(strong, "id", "hour")), repo.ErrSchema},
		"no sort key":              {sortedIn(rig.GlobalTable(strong, "id")), repo.ErrSchema},
		"a sort key too many":      {plainIn(rig.GlobalTable(strong, "id", "day")), repo.ErrSchema},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}
