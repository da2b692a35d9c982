package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// idle is how long a relay waits when the outbox is empty.
const idle = 50 * time.Millisecond

// relay sends the notices in the outbox to the warehouse, until ctx ends. Each server
// does; the lock of a notice says whose it is. A server that dies between sending and
// deleting leaves the notice to another, who sends it again: the warehouse gets it at
// least once, and tells it by its id. Nor do they come in order: who hears that an order
// is cancelled must stand it that the order itself comes later.
func (s *shop) relay(ctx context.Context, warehouse string) {
	for ctx.Err() == nil {
		sent := 0
		for n, err := range s.notices.Table().Query(ctx, outbox) {
			if err == nil {
				err = s.deliver(ctx, warehouse, n)
			}
			switch {
			case err == nil:
				sent++
			case errors.Is(err, repo.ErrNotFound), errors.Is(err, repo.ErrLocked), ctx.Err() != nil: // another server's, or the end
			default:
				slog.Warn("a notice stays in the outbox for now", "notice", n.ID, "error", err)
			}
		}
		if sent == 0 {
			select {
			case <-time.After(idle):
			case <-ctx.Done():
			}
		}
	}
}

// deliver sends one notice under its lock, and deletes it.
func (s *shop) deliver(ctx context.Context, warehouse string, n notice) error {
	_, err := s.notices.Update(ctx, repo.Key{Partition: n.Box, Sort: n.ID}, func(ctx context.Context, n *notice) error {
		if err := send(ctx, warehouse, *n); err != nil {
			return err
		}
		return repo.Remove
	})
	return err
}

// send tells the warehouse. One that does not answer is left when the lock's lease is
// over, for ctx ends with the lock.
func send(ctx context.Context, warehouse string, n notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, warehouse, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // so that the connection can be used again
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the warehouse says %s", resp.Status)
	}
	return nil
}
