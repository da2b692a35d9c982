package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// deadAndRunning is a queue with a dead letter and a job that runs.
func deadAndRunning(t *testing.T, b bench, client *dynamodb.Client) (s *queue, dead string, runs *jobs.Job[deploy], end func()) {
	t.Helper()
	s = rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{
		Lease: time.Hour, Wait: repo.Wait{Min: time.Hour, Max: time.Hour}, Retry: jobs.Retry{Attempts: 1}}))(t)
	dead = put(t, s, "staging", deploy{"v", 1})
	rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
	put(t, s, "staging", deploy{"v", 2})
	runs = rig.Must(s.Next(t.Context(), "staging"))(t)
	return s, dead, runs, func() {
		_ = s.Close(context.Background())
		synctest.Wait()
	}
}

// A call whose context ends between two transactions that others are in the way of has
// changed nothing, and says so.
func TestCallsThatEndInAConflict(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var conflicts atomic.Bool
		client := refusing(network, conflicts.Load)
		s, dead, runs, end := deadAndRunning(t, b, client)
		defer end()
		waits := put(t, s, "staging", deploy{"v", 3})
		rig.Is(t, s.SetLimit(t.Context(), "staging", 2))
		conflicts.Store(true)
		for name, call := range map[string]func(context.Context) error{
			"Cancel":   func(ctx context.Context) error { return s.Cancel(ctx, "staging", waits) },
			"Requeue":  func(ctx context.Context) error { return s.Requeue(ctx, "staging", dead) },
			"Discard":  func(ctx context.Context) error { return s.Discard(ctx, "staging", dead) },
			"BreakJob": func(ctx context.Context) error { return s.BreakJob(ctx, "staging", runs.ID(), runs.Token()) },
			"Next":     func(ctx context.Context) error { _, err := s.Next(ctx, "staging"); return err },
			"Done":     runs.Done,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, repo.ErrOutcomeUnknown) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		conflicts.Store(false)
		wantResource(t, s, "staging", 1, 1, 1)
		rig.Is(t, runs.Done(t.Context()))
		audit(t, s)
	})
}

// The same where the transaction in the way was a copy of the call's own: the rows tell, also
// whoever has left.
func TestCallsThatEndInAConflictWithTheirCopy(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var conflicts atomic.Bool
		copier := fault.NewCopier(network)
		copier.On(func(one *fault.Copy) (*http.Response, error) {
			if one.Op != "TransactWriteItems" || !conflicts.Load() {
				return nil, nil
			}
			resp, err := one.Deliver()
			if err != nil {
				return nil, err
			}
			return one.Met("TransactionConflict", 0), resp.Body.Close()
		})
		s, dead, runs, end := deadAndRunning(t, b, rig.Client(rig.Over(copier)))
		defer end()
		conflicts.Store(true)
		for name, call := range map[string]func(context.Context) error{
			"EnqueueMany": func(ctx context.Context) error {
				_, err := s.EnqueueMany(ctx, "staging", []deploy{{"v", 3}, {"v", 4}})
				return err
			},
			"In(tx).Enqueue": func(ctx context.Context) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					_, err := s.In(tx).Enqueue(ctx, "staging", deploy{"v", 5}, jobs.Unique("five"))
					return err
				})
			},
			"Requeue":  func(ctx context.Context) error { return s.Requeue(ctx, "staging", dead) },
			"BreakJob": func(ctx context.Context) error { return s.BreakJob(ctx, "staging", runs.ID(), runs.Token()) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := call(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		conflicts.Store(false)
		wantResource(t, s, "staging", 5, 0, 0)
		audit(t, s)
	})
}

// Calls that were sent together, and refused for a reason that says nothing of a copy of their
// transaction, are sent alone: where such a copy was applied each is told so, or that nobody
// knows.
func TestCallsThatAreRefusedTogetherBesideTheirCopy(t *testing.T) {
	for _, unread := range []bool{false, true} {
		b := newBench(t)
		rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
			theirs := rig.Must(jobs.New[deploy](rig.Client(rig.Over(network)), b.Table, jobs.Config{Limit: 3}))(t)
			copier := fault.NewCopier(network)
			s := rig.Must(jobs.New[deploy](rig.Client(rig.Over(copier)), b.Table, jobs.Config{Limit: 3}))(t)
			put(t, s, "staging", deploy{"v", 1})
			runs := rig.Must(theirs.Next(t.Context(), "staging"))(t)
			waits, first := put(t, s, "staging", deploy{"v", 2}), put(t, s, "staging", deploy{"v", 3})
			moves := put(t, s, "staging", deploy{"v", 4}, jobs.After(time.Hour))
			var transactions atomic.Int64
			copier.On(func(one *fault.Copy) (*http.Response, error) {
				n := transactions.Load()
				switch {
				case one.Op == "TransactWriteItems":
					n = transactions.Add(1)
				case n > 1 && unread && bytes.Contains(one.Body, []byte("RESOURCE#")):
					return one.Met("AccessDeniedException", 0), nil
				}
				switch {
				case one.Op != "TransactWriteItems" || n > 2:
				case n == 1: // the others wait for it
					time.Sleep(10 * time.Millisecond)
				default:
					resp, err := one.Deliver()
					if err != nil {
						return nil, err
					}
					rig.Must(theirs.Next(t.Context(), "staging"))(t)
					rig.Must(theirs.Next(t.Context(), "staging"))(t)
					return one.Met("AccessDeniedException", 0), resp.Body.Close()
				}
				return nil, nil
			})
			var all sync.WaitGroup
			all.Go(func() { rig.Is(t, s.Cancel(t.Context(), "staging", first)) })
			time.Sleep(5 * time.Millisecond)
			all.Go(func() { rig.Is(t, s.Cancel(t.Context(), "staging", waits), repo.ErrOutcomeUnknown) })
			all.Go(func() { rig.Is(t, s.Reschedule(t.Context(), "staging", moves, time.Now())) })
			all.Go(func() {
				err := s.BreakJob(t.Context(), "staging", runs.ID(), runs.Token())
				if unread {
					rig.Is(t, err, repo.ErrOutcomeUnknown)
				} else {
					rig.Is(t, err)
				}
			})
			all.Wait()
			copier.On(nil)
			wantResource(t, s, "staging", 0, 2, 0)
			_ = theirs.Close(t.Context())
			synctest.Wait()
		})
	}
}
