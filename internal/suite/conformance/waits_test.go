package conformance_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// waited fits all strategies.
type waited struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// Sleeps may be as long as a number can say: whoever waits ends with his context, of an item
// that is held, and of one that others write each time.
func TestTheLongestWaits(t *testing.T) {
	t.Parallel()
	for _, wait := range []repo.Wait{{Max: math.MaxInt64}, {Min: math.MaxInt64, Max: math.MaxInt64}, {Min: math.MaxInt64 / 2, Max: math.MaxInt64}, {Max: math.MaxInt64, Attempts: math.MaxInt}} {
		r := rig.New(t)
		table := rig.Must(repo.NewTable[waited](r.Client, r.Table, repo.TableConfig{Remember: math.MaxInt64}))(t)
		rig.Is(t, table.EnsureTable(t.Context()))
		versions := rig.Must(optimistic.New(table, optimistic.Config{Wait: wait}))(t)
		locking := rig.Must(pessimistic.New(table, pessimistic.Config{Wait: wait}))(t)
		events := rig.Must(nolock.New(table, nolock.Config{Wait: wait}))(t)
		others := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
		runs := rig.Must(once.New(r.Client, r.Table+"-once", once.Config{Wait: wait, Table: repo.TableConfig{Remember: math.MaxInt64}}))(t)
		names, peer := rig.Must(mutex.New(r.Client, r.Table+"-names", mutex.Config{Wait: wait}))(t), rig.Must(mutex.New(r.Client, r.Table+"-names", mutex.Config{}))(t)
		turns, other := rig.Must(ticket.New(r.Client, r.Table+"-turns", ticket.Config{Wait: wait}))(t), rig.Must(ticket.New(r.Client, r.Table+"-turns", ticket.Config{}))(t)
		for _, table := range []interface{ EnsureTable(context.Context) error }{runs, names, turns} {
			rig.Is(t, table.EnsureTable(t.Context()))
		}
		_, err := semaphore.New(r.Client, r.Table+"-permits", semaphore.Config{Wait: wait})
		rig.Is(t, err)
		sleeps := repo.Wait{Min: wait.Min, Max: wait.Max} // jobs and transactions bound their tries otherwise
		_, err = jobs.New[int](r.Client, r.Table+"-jobs", jobs.Config{Wait: sleeps, Retry: jobs.Retry{Min: wait.Min, Max: wait.Max}})
		rig.Is(t, err)

		x := repo.Key{Partition: "x"}
		rig.Must(others.Create(t.Context(), waited{ID: "x", At: 1}))(t)
		change := func(_ context.Context, x *waited) error { x.At++; return nil }
		within := func(name string, call func(context.Context) error) {
			t.Helper()
			patience := 400 * time.Millisecond // a busy machine answers in that time
			if strings.HasSuffix(name, "conflicts") {
				patience *= 2 // the sleeps begin after a few requests
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := call(ctx)
			again := repo.Retryable(err)
			if name == "txn, conflicts" { // whose sleeps grow with the conflicts: it may end between two
				again = repo.VerdictOf(err) == repo.NotWritten
			}
			if !errors.Is(err, context.DeadlineExceeded) || !again {
				t.Errorf("%+v, %s: %v", wait, name, err)
			}
		}
		held := rig.Must(locking.Acquire(t.Context(), x))(t)
		for name, r := range map[string]repo.Repository[waited]{"optimistic": versions, "nolock": events, "pessimistic": locking} {
			within(name, func(ctx context.Context) error { _, err := r.Update(ctx, x, change); return err })
		}
		within("txn", func(ctx context.Context) error {
			return txn.Config{Wait: sleeps}.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := versions.In(tx).Update(ctx, x, change)
				return err
			})
		})
		rig.Is(t, held.Release(t.Context()))
		within("txn, conflicts", func(ctx context.Context) error {
			return txn.Config{Wait: sleeps}.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				if _, err := versions.In(tx).Update(ctx, x, change); err != nil {
					return err
				}
				_, err := others.Update(t.Context(), x, change)
				return err
			})
		})
		within("optimistic, conflicts", func(ctx context.Context) error {
			_, err := versions.Update(ctx, x, func(ctx context.Context, x *waited) error {
				_, err := others.Update(t.Context(), repo.Key{Partition: x.ID}, change)
				return errors.Join(err, change(ctx, x))
			})
			return err
		})
		rig.Must(once.Do(t.Context(), runs, "x", func(context.Context, once.Run) (int, error) {
			within("once", func(ctx context.Context) error {
				_, err := once.Do(ctx, runs, "x", func(context.Context, once.Run) (int, error) { return 2, nil })
				return err
			})
			return 1, nil
		}))(t)
		rig.Equal(t, rig.Must(once.Do(t.Context(), runs, "x", func(context.Context, once.Run) (int, error) { return 2, nil }))(t), 1, "the id is forgotten")
		rig.Is(t, peer.Do(t.Context(), "x", func(context.Context, *mutex.Lock) error {
			within("mutex", func(ctx context.Context) error { _, err := names.Lock(ctx, "x"); return err })
			return nil
		}))
		rig.Is(t, other.Do(t.Context(), "x", func(context.Context, *ticket.Turn) error {
			within("ticket", func(ctx context.Context) error { _, err := turns.Lock(ctx, "x"); return err })
			return nil
		}))
		if t.Failed() {
			return
		}
	}
}
