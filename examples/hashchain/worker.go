package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// What a worker says on its standard output, as JSON lines.
const (
	acquired  = "acquired"
	committed = "committed"
	failed    = "failed"
)

type event struct {
	Kind   string    `json:"kind"`
	Worker string    `json:"worker"`
	N      int       `json:"n"`
	Token  int64     `json:"token,omitempty"`
	At     time.Time `json:"at"`
	Wait   float64   `json:"wait,omitempty"` // seconds
	Error  string    `json:"error,omitempty"`
}

func (e event) id() string { return link{Worker: e.Worker, N: e.N}.id() }

var chainKey = repo.Key{Partition: "chain"}

// work is a worker process: it extends the chain until it is long
// enough, or its parent is gone.
func work(ctx context.Context, s settings, client *dynamodb.Client) error {
	table, err := repo.NewTable[chain](client, s.table, repo.TableConfig{})
	if err != nil {
		return err
	}
	locker, err := lockedread.New(table, lockedread.Config{Lease: s.lease, Owner: s.worker, ClockSkew: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	for n := 1; ctx.Err() == nil; n++ {
		full, err := extend(ctx, locker, s, n)
		switch {
		case full:
			return nil
		case ctx.Err() != nil: // it was told to end
		case errors.Is(err, repo.ErrLockExpired), errors.Is(err, repo.ErrLockLost), errors.Is(err, repo.ErrOutcomeUnknown):
			say(event{Kind: failed, Worker: s.worker, N: n, Error: err.Error()}) // too slow this time
		case err != nil:
			return fmt.Errorf("worker %s: %w", s.worker, err)
		}
	}
	return nil
}

// extend adds one link: lock and read, compute, commit and release.
func extend(ctx context.Context, locker *lockedread.Locker[chain], s settings, n int) (full bool, err error) {
	began := time.Now()
	held, err := locker.Acquire(ctx, chainKey)
	if err != nil {
		return false, err
	}
	defer held.Release(ctx) //nolint:errcheck // harmless after Commit
	c := held.Item()
	if len(c.Links) >= s.links {
		return true, nil
	}
	e := event{Worker: s.worker, N: n, Token: held.Token()}
	e.Kind, e.Wait = acquired, time.Since(began).Seconds()
	say(e)
	select { // what takes time under the lock
	case <-time.After(s.work):
	case <-held.Context().Done():
	}
	c.Links = append(c.Links, c.next(s.worker, n, held.Token()))
	if _, err := held.Commit(ctx, c); err != nil {
		return false, err
	}
	e.Kind, e.Wait = committed, 0
	say(e)
	return false, nil
}

func say(e event) {
	e.At = time.Now()
	crew.Say(e)
}
