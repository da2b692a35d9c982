package semaphore

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

func (s *Semaphore) item(resource string) nesting.Item {
	return nesting.ItemOf(s.table.Core, resources.Key(resource))
}

// inside is a context that tells of the permit.
func (h *Permit) inside(ctx context.Context) context.Context {
	return nesting.Holding(ctx, h.s.item(h.name), h.ID(), h.lease.Cause)
}

// refuseNested refuses a call that would wait for what its own context holds: as many
// permits as the limit was when this process has last seen it.
func (s *Semaphore) refuseNested(ctx context.Context, resource string) error {
	n := nesting.Holds(ctx, s.item(resource))
	if n == 0 {
		return nil
	}
	q := s.lockQueue(resource)
	defer s.queuesMu.Unlock()
	if q.seen == nil || n < q.seen.Limit {
		return nil
	}
	return fmt.Errorf("resource %q: %w: all its %d permits are held where this call is made, which would wait for itself: use what is held", resource, repo.ErrNested, n)
}
