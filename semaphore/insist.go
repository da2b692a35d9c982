package semaphore

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

// insist sends the write that ends a permit or a job until it is answered, as
// long as ctx and the lease allow. Repeating is harmless: either can be ended
// only once. send also says whether a refusal is worth another try. The result
// is clean if every attempt was.
func insist(ctx context.Context, keep *lease.Lease, wait repo.Wait, send func() (ddb.Result, bool)) ddb.Result {
	backoff := ddb.Backoff{Min: wait.Min, Max: wait.Max}
	for clean := true; ; ddb.Pause(ctx, backoff.Next(time.Now(), time.Time{})) {
		res, again := send()
		clean = clean && res.Clean
		res.Clean = clean
		if (again || res.Outcome == ddb.Unknown) && ctx.Err() == nil && !keep.Expired() {
			continue
		}
		if res.Outcome == ddb.Refused && !clean {
			res.Outcome = ddb.Unknown
		}
		return res
	}
}
