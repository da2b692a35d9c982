package wire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/txn"
)

const resource = "production"

// work are the permits and jobs of one table.
type work = fixture.Work[string]

// on makes an operation of a semaphore in which a resource has a limit of 2.
func on(name string, prepare func(*testing.T, work) func(context.Context) error) operation {
	return withAttempts(2, name, prepare)
}

// withAttempts is on, with a number of attempts for each job.
func withAttempts(attempts int, name string, prepare func(*testing.T, work) func(context.Context) error) operation {
	return operation{name: "semaphore: " + name, prepare: func(t *testing.T, b *bench) func() error {
		s := fixture.OpenWork[string](t, b.Client, b.Table, jobs.Config{Lease: lease, Owner: "owner", Retry: jobs.Retry{Attempts: attempts}})
		rig.Is(t, s.EnsureTable(t.Context()))
		rig.Is(t, s.SetLimit(t.Context(), resource, 2))
		do := prepare(t, s)
		return func() error { return do(t.Context()) }
	}}
}

// drain runs through what a list has.
func drain[V any](all iter.Seq2[V, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// full is a resource without a free permit.
func full(t *testing.T, s work) (held *semaphore.Permit) {
	t.Helper()
	for range 2 {
		held = rig.Must(s.Acquire(t.Context(), resource))(t)
	}
	return held
}

func permitOperations() []operation {
	return []operation{
		on("SetLimit", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { return s.SetLimit(ctx, resource, 3) }
		}),
		on("Acquire", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, resource); return err }
		}),
		on("Acquire of a new resource", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, "new"); return err }
		}),
		on("TryAcquire", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { _, err := s.TryAcquire(ctx, resource); return err }
		}),
		on("TryAcquire, all in use", func(t *testing.T, s work) func(context.Context) error {
			full(t, s)
			return func(ctx context.Context) error { _, err := s.TryAcquire(ctx, resource); return locked(err) }
		}),
		on("Permit.Extend", func(t *testing.T, s work) func(context.Context) error { return full(t, s).Extend }),
		on("Permit.Release", func(t *testing.T, s work) func(context.Context) error { return full(t, s).Release }),
		on("Permit.RequireIn", func(t *testing.T, s work) func(context.Context) error {
			held := full(t, s)
			return func(ctx context.Context) error {
				return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return tx.Require(held) })
			}
		}),
		on("Do", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error {
				return s.Do(ctx, resource, func(context.Context, *semaphore.Permit) error { return nil })
			}
		}),
		on("Resource", func(t *testing.T, s work) func(context.Context) error {
			full(t, s)
			return func(ctx context.Context) error { _, err := s.Resource(ctx, resource); return err }
		}),
		anyOrder(on("Resources", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { return drain(s.Resources(ctx)) }
		})),
		anyOrder(on("Audit", func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 1)
			return func(ctx context.Context) error { return drain(s.Audit(ctx)) }
		})),
		on("Permits", func(t *testing.T, s work) func(context.Context) error {
			full(t, s)
			return func(ctx context.Context) error { _, err := s.Permits(ctx, resource); return err }
		}),
		on("BreakPermit", func(t *testing.T, s work) func(context.Context) error {
			held := full(t, s)
			return func(ctx context.Context) error { return s.BreakPermit(ctx, resource, held.ID()) }
		}),
		on("Pause", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { return s.Pause(ctx, resource) }
		}),
		on("Resume", func(t *testing.T, s work) func(context.Context) error {
			rig.Is(t, s.Pause(t.Context(), resource))
			return func(ctx context.Context) error { return s.Resume(ctx, resource) }
		}),
		on("Close with a permit", func(t *testing.T, s work) func(context.Context) error {
			rig.Must(s.Acquire(t.Context(), resource))(t)
			return s.Close
		}),
		on("Forget", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { return s.Forget(ctx, resource) }
		}),
	}
}

func anyOrder(o operation) operation { o.anyOrder = true; return o }

// enqueue queues jobs.
func enqueue(t *testing.T, s work, n int) {
	t.Helper()
	for i := range n {
		rig.Must(s.Enqueue(t.Context(), resource, fmt.Sprint("job ", i+1)))(t)
	}
}

// running starts a job.
func running(t *testing.T, s work) *jobs.Job[string] {
	t.Helper()
	return rig.Must(s.Next(t.Context(), resource))(t)
}

var errBroken = errors.New("broken")

func jobOperations() []operation {
	started := func(name string, do func(context.Context, *jobs.Job[string]) error) operation {
		return on(name, func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 1)
			job := running(t, s)
			return func(ctx context.Context) error { return do(ctx, job) }
		})
	}
	kept := func(name string, do func(context.Context, work, *jobs.Job[string]) error) operation {
		return on(name, func(t *testing.T, s work) func(context.Context) error {
			rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.Keep(time.Hour)))(t)
			job := running(t, s)
			rig.Is(t, job.SetResult("result"))
			return func(ctx context.Context) error { return do(ctx, s, job) }
		})
	}
	return []operation{
		on("Enqueue", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { _, err := s.Enqueue(ctx, resource, "job 1"); return err }
		}),
		on("Enqueue for a new resource", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error { _, err := s.Enqueue(ctx, "new", "job 1"); return err }
		}),
		on("Enqueue in a transaction", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					if _, err := s.In(tx).Enqueue(ctx, resource, "job 1"); err != nil {
						return err
					}
					_, err := s.In(tx).Enqueue(ctx, resource, "job 2", jobs.WithID("message"))
					return err
				})
			}
		}),
		on("Enqueue for a time", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.Enqueue(ctx, resource, "job 1", jobs.After(time.Hour))
				return err
			}
		}),
		on("Enqueue with all options", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.Enqueue(ctx, resource, "job 1", jobs.Priority(3), jobs.Attempts(7), jobs.Timeout(time.Minute), jobs.Unique("key"), jobs.Keep(time.Hour))
				return err
			}
		}),
		on("EnqueueMany", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.EnqueueMany(ctx, resource, []string{"job 1", "job 2"})
				return err
			}
		}),
		on("Job.Done of a unique job", func(t *testing.T, s work) func(context.Context) error {
			rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.Unique("key")))(t)
			return running(t, s).Done
		}),
		kept("Job.Done of a job that is kept", func(ctx context.Context, _ work, job *jobs.Job[string]) error { return job.Done(ctx) }),
		kept("Job.DoneIn of a job that is kept", func(ctx context.Context, _ work, job *jobs.Job[string]) error {
			return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return job.DoneIn(tx) })
		}),
		kept("Status of a job that runs", func(ctx context.Context, s work, job *jobs.Job[string]) error {
			_, err := s.Status(ctx, resource, job.ID())
			return err
		}),
		on("Status of a job that is done", func(t *testing.T, s work) func(context.Context) error {
			id := rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.Keep(time.Hour)))(t)
			rig.Is(t, running(t, s).Done(t.Context()))
			return func(ctx context.Context) error { _, err := s.Status(ctx, resource, id); return err }
		}),
		on("Next of a job whose time has come", func(t *testing.T, s work) func(context.Context) error {
			id := rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.After(30*time.Millisecond)))(t)
			rig.Await(t, "it is due", func() bool {
				for job, err := range s.Jobs(t.Context(), resource) {
					return err == nil && job.ID == id && job.NotBefore.Before(time.Now())
				}
				return false
			})
			return func(ctx context.Context) error { _, err := s.Next(ctx, resource); return err }
		}),
		on("Cancel of a job with a time", func(t *testing.T, s work) func(context.Context) error {
			id := rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.After(time.Hour)))(t)
			return func(ctx context.Context) error { return s.Cancel(ctx, resource, id) }
		}),
		on("Reschedule", func(t *testing.T, s work) func(context.Context) error {
			id := rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.After(time.Hour)))(t)
			return func(ctx context.Context) error { return s.Reschedule(ctx, resource, id, time.Now().Add(2*time.Hour)) }
		}),
		on("Cancel and Reschedule in a transaction", func(t *testing.T, s work) func(context.Context) error {
			one := rig.Must(s.Enqueue(t.Context(), resource, "job 1", jobs.After(time.Hour)))(t)
			two := rig.Must(s.Enqueue(t.Context(), resource, "job 2", jobs.After(time.Hour)))(t)
			return func(ctx context.Context) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					return errors.Join(s.In(tx).Cancel(ctx, resource, one), s.In(tx).Reschedule(ctx, resource, two, time.Now().Add(2*time.Hour)))
				})
			}
		}),
		on("Next", func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 2)
			return func(ctx context.Context) error { _, err := s.Next(ctx, resource); return err }
		}),
		on("Next without work", func(_ *testing.T, s work) func(context.Context) error {
			return func(ctx context.Context) error {
				if _, err := s.Next(ctx, resource); !errors.Is(err, jobs.ErrNoWork) {
					return fmt.Errorf("not without work: %w", err)
				}
				return nil
			}
		}),
		on("BreakJob", func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 1)
			job := running(t, s)
			return func(ctx context.Context) error { return s.BreakJob(ctx, resource, job.ID(), job.Token()) }
		}),
		on("Cancel", func(t *testing.T, s work) func(context.Context) error {
			id := rig.Must(s.Enqueue(t.Context(), resource, "job 1"))(t)
			return func(ctx context.Context) error { return s.Cancel(ctx, resource, id) }
		}),
		started("Job.Done", func(ctx context.Context, job *jobs.Job[string]) error { return job.Done(ctx) }),
		started("Job.RequireIn", func(ctx context.Context, job *jobs.Job[string]) error {
			return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return tx.Require(job) })
		}),
		started("Job.DoneIn", func(ctx context.Context, job *jobs.Job[string]) error {
			return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return job.DoneIn(tx) })
		}),
		started("Job.Fail", func(ctx context.Context, job *jobs.Job[string]) error { return job.Fail(ctx, errBroken) }),
		started("Job.Snooze", func(ctx context.Context, job *jobs.Job[string]) error { return job.Snooze(ctx, time.Hour) }),
		started("Job.Return", func(ctx context.Context, job *jobs.Job[string]) error { return job.Return(ctx) }),
		on("Jobs", func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 2)
			return func(ctx context.Context) error { return drain(s.Jobs(ctx, resource)) }
		}),
	}
}

func deadOperations() []operation {
	dead := func(name string, do func(context.Context, work, string) error) operation {
		return withAttempts(1, name, func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 1)
			job := running(t, s)
			rig.Is(t, job.Fail(t.Context(), errBroken))
			return func(ctx context.Context) error { return do(ctx, s, job.ID()) }
		})
	}
	return []operation{
		withAttempts(1, "Job.Fail of the last attempt", func(t *testing.T, s work) func(context.Context) error {
			enqueue(t, s, 1)
			job := running(t, s)
			return func(ctx context.Context) error { return job.Fail(ctx, errBroken) }
		}),
		dead("Dead", func(ctx context.Context, s work, _ string) error { return drain(s.Dead(ctx, resource)) }),
		dead("Requeue", func(ctx context.Context, s work, id string) error { return s.Requeue(ctx, resource, id) }),
		dead("Discard", func(ctx context.Context, s work, id string) error { return s.Discard(ctx, resource, id) }),
	}
}
