package semaphore

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Close ends all waiting with ErrClosed, and waits for it as long as ctx allows. Then it
// gives back the permits. Renewals end with that. Its error joins one *repo.CloseError for
// each permit that could not be given back, which others take over after its lease; calling
// Close again tries them again. Afterwards the semaphore gives no permits; what is only
// read or written goes on. One request for each permit.
func (s *Semaphore) Close(ctx context.Context) error {
	return s.open.Close(ctx, func(h *Permit) error { return h.endOnClose(ctx) })
}

// endOnClose gives the permit back, as long as ctx allows. Its context ends before.
func (h *Permit) endOnClose(ctx context.Context) error {
	h.lease.Forget(ErrClosed)
	if err := h.release(ctx, ErrClosed); err != nil && !h.ended() {
		return &repo.CloseError{Table: h.s.table.Core.Name, Key: resources.KeyOf(resources.Key(h.name)), Token: h.token, Err: err}
	}
	return nil
}

// ended reports whether the permit was ended by its holder, or by Close. An error does not
// tell: it may say so of what its context has ended with.
func (h *Permit) ended() bool {
	why := h.lease.Ended()
	return errors.Is(why, repo.ErrReleased) || errors.Is(why, ErrClosed)
}

// unlessClosed hands out what was taken; if Close came meanwhile, and may not have seen
// it, it gives it back.
func (h *Permit) unlessClosed() error {
	if h.s.open.Add(h) == nil {
		return nil
	}
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	return errors.Join(ErrClosed, h.endOnClose(ctx))
}
