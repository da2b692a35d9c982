package jobs_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// A global table with strong consistency has no transactions: jobs are refused there, permits
// work.
func TestGlobalTables(t *testing.T) {
	strong := rig.GlobalTable(types.MultiRegionConsistencyStrong, "pk", "sk")
	rig.Is(t, rig.Must(jobs.New[string](strong, "table", jobs.Config{}))(t).EnsureTable(t.Context()), repo.ErrSchema)
	rig.Is(t, rig.Must(semaphore.New(strong, "table", semaphore.Config{}))(t).EnsureTable(t.Context()))
}
