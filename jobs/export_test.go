package jobs

import (
	"context"
	"time"
)

// SetClock gives a queue a clock that runs ahead of the real one, or behind.
func (q calls) SetClock(ahead time.Duration) {
	q.s.table.Clock = func() time.Time { return time.Now().Add(ahead) }
}

// FoundToFollow is how many jobs a start finds that goes with the end of one, before that end
// has come to wait for it.
func (q calls) FoundToFollow(ctx context.Context, resource string) (int, error) {
	r, err := q.s.table.Read(ctx, resource)
	if err != nil {
		return 0, err
	}
	r.Running--
	l, err := q.s.readLine(ctx, q.s.localResource(resource), &r, 1, follows)
	if err != nil {
		return 0, err
	}
	return len(l.rows), nil
}
