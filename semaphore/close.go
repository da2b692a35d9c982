package semaphore

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

// held is a permit or a running job, as Close knows it.
type held interface {
	// endOnClose ends it, as long as ctx allows. Its context ends before.
	endOnClose(ctx context.Context) error
}

// Close ends all waiting with ErrClosed, and every [Semaphore.Run], whose handlers are
// told by their contexts, and waits for them as long as ctx allows. Then it gives back
// what is held: the permits, and the jobs, which go back to their places in line, their
// attempts not counted. Renewals end with that. Its error joins one *repo.CloseError for
// each permit or job that could not be given back, which others take over after its
// lease; calling Close again tries them again. Afterwards the semaphore gives no permits
// and starts no jobs; what is only read or written goes on. One request for each permit,
// and for jobs of one resource together.
func (s *store) Close(ctx context.Context) error {
	return s.open.Close(ctx, func(h held) error { return h.endOnClose(ctx) })
}

// endOnClose implements held.
func (h *Permit) endOnClose(ctx context.Context) error {
	h.lease.Forget(ErrClosed)
	if err := h.release(ctx, ErrClosed); err != nil && !ended(h.lease) {
		return &repo.CloseError{Table: h.s.core.Name, Key: keyOf(resourceKey(h.name)), Token: h.token, Err: err}
	}
	return nil
}

// endOnClose implements held.
func (j *job) endOnClose(ctx context.Context) error {
	j.lease.Forget(ErrClosed)
	if err := j.endOn(ctx, ErrClosed, j.returned); err != nil && !ended(j.lease) {
		return &repo.CloseError{Table: j.s.core.Name, Key: keyOf(j.row.row), Token: j.token, Err: err}
	}
	return nil
}

// ended reports whether a permit or a job was ended by its holder, or by Close. An error
// does not tell: it may say so of what its context has ended with.
func ended(l *lease.Lease) bool {
	why := l.Ended()
	return errors.Is(why, repo.ErrReleased) || errors.Is(why, ErrClosed)
}

// settled forgets a permit or a job that is over.
func (s *store) settled(h held, err, ended error) {
	if err == nil || ended != nil {
		s.open.Remove(h)
	}
}

// unlessClosed hands out what was taken; if Close came meanwhile, and may not have seen
// it, it gives it back.
func (s *store) unlessClosed(h held) error {
	if s.open.Add(h) == nil {
		return nil
	}
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	return errors.Join(ErrClosed, h.endOnClose(ctx))
}
