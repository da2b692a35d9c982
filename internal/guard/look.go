package guard

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Look is called by one who waits in a queue before it looks at the item again:
// it sleeps for d, or says why not.
func (t *Turn) Look(ctx context.Context, l ddb.Lock, d time.Duration) error {
	if err := t.count(l); err != nil {
		return err
	}
	t.last = l
	if t.began.IsZero() {
		t.began = t.Clock()
		t.backoff = ddb.Backoff{Min: t.Wait.Min, Max: t.Wait.Max} // it may go on without a queue
	}
	ddb.Pause(ctx, d)
	if ctx.Err() != nil {
		return ddb.Because(Locked(t.Key, l), ddb.CtxError(ctx))
	}
	return nil
}
