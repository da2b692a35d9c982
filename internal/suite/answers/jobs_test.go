package answers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// work are the permits and jobs of one table.
type work = fixture.Work[int]

// resourceAs counts by what a resource tells.
func resourceAs(count func(jobs.Resource) int) func(*testing.T, *place, string) func(context.Context) int {
	return func(t *testing.T, p *place, id string) func(context.Context) int {
		other := rig.Must(jobs.New[int](p.peer, p.jobs, jobs.Config{}))(t)
		return func(ctx context.Context) int { return count(rig.Must(other.Resource(ctx, id))(t)) }
	}
}

func jobCalls() (all []call) {
	queued := resourceAs(func(r jobs.Resource) int { return r.Queued })
	running := resourceAs(func(r jobs.Resource) int { return r.Running })
	idle := resourceAs(func(r jobs.Resource) int { return 1 - r.Running })
	empty := resourceAs(func(r jobs.Resource) int { return 1 - r.Queued - r.Running })
	dead := resourceAs(func(r jobs.Resource) int { return r.Dead })
	buried := resourceAs(func(r jobs.Resource) int { return 1 - r.Dead })
	paused := resourceAs(func(r jobs.Resource) int {
		if r.Paused.IsZero() {
			return 0
		}
		return 1
	})
	resumed := func(t *testing.T, p *place, id string) func(context.Context) int {
		n := paused(t, p, id)
		return func(ctx context.Context) int { return 1 - n(ctx) }
	}
	limit := resourceAs(func(r jobs.Resource) int {
		if r.Limit == 3 {
			return 1
		}
		return 0
	})
	add := func(name string, takes bool, counts func(*testing.T, *place, string) func(context.Context) int, prepare func(*testing.T, work, string) func(context.Context) error) {
		all = append(all, call{name: "semaphore." + name, takes: takes, open: func(t *testing.T, p *place, c client, id string) action {
			s := fixture.OpenWork[int](t, c, p.jobs, jobs.Config{Retry: jobs.Retry{Attempts: 1}})
			rig.Is(t, s.SetLimit(t.Context(), id, 1))
			return action{prepare(t, s, id), counts(t, p, id), closed(s.Close)}
		}})
	}
	add("SetLimit", false, limit, func(_ *testing.T, s work, id string) func(context.Context) error {
		return func(ctx context.Context) error { return s.SetLimit(ctx, id, 3) }
	})
	add("Pause", false, paused, func(_ *testing.T, s work, id string) func(context.Context) error {
		return func(ctx context.Context) error { return s.Pause(ctx, id) }
	})
	add("Resume", false, resumed, func(t *testing.T, s work, id string) func(context.Context) error {
		rig.Is(t, s.Pause(t.Context(), id))
		return func(ctx context.Context) error { return s.Resume(ctx, id) }
	})
	add("Acquire", true, running, func(_ *testing.T, s work, id string) func(context.Context) error {
		return func(ctx context.Context) error { return justErr(s.Acquire(ctx, id)) }
	})
	add("TryAcquire", true, running, func(_ *testing.T, s work, id string) func(context.Context) error {
		return func(ctx context.Context) error { return justErr(s.TryAcquire(ctx, id)) }
	})
	add("Permit.Release", false, idle, func(t *testing.T, s work, id string) func(context.Context) error {
		return rig.Must(s.Acquire(t.Context(), id))(t).Release
	})
	add("BreakPermit", false, idle, func(t *testing.T, s work, id string) func(context.Context) error {
		held := rig.Must(s.Acquire(t.Context(), id))(t)
		return func(ctx context.Context) error { return s.BreakPermit(ctx, id, held.ID()) }
	})
	add("Enqueue", false, queued, func(_ *testing.T, s work, id string) func(context.Context) error {
		return func(ctx context.Context) error { return justErr(s.Enqueue(ctx, id, 1)) }
	})
	add("Enqueue with an id", false, queued, func(_ *testing.T, s work, id string) func(context.Context) error {
		return func(ctx context.Context) error { return justErr(s.Enqueue(ctx, id, 1, jobs.WithID("m"))) }
	})
	add("Cancel", false, empty, func(t *testing.T, s work, id string) func(context.Context) error {
		job := rig.Must(s.Enqueue(t.Context(), id, 1))(t)
		return func(ctx context.Context) error { return s.Cancel(ctx, id, job) }
	})
	add("Next", true, running, func(t *testing.T, s work, id string) func(context.Context) error {
		rig.Must(s.Enqueue(t.Context(), id, 1))(t)
		return func(ctx context.Context) error { return justErr(s.Next(ctx, id)) }
	})
	next := func(t *testing.T, s work, id string) *jobs.Job[int] {
		rig.Must(s.Enqueue(t.Context(), id, 1))(t)
		return rig.Must(s.Next(t.Context(), id))(t)
	}
	failed := errors.New("failed")
	add("Job.Done", false, empty, func(t *testing.T, s work, id string) func(context.Context) error { return next(t, s, id).Done })
	add("Job.Done of a job that is kept", false, empty, func(t *testing.T, s work, id string) func(context.Context) error {
		rig.Must(s.Enqueue(t.Context(), id, 1, jobs.Keep(time.Hour)))(t)
		return rig.Must(s.Next(t.Context(), id))(t).Done
	})
	add("Job.Return", false, queued, func(t *testing.T, s work, id string) func(context.Context) error { return next(t, s, id).Return })
	add("Job.Fail", false, dead, func(t *testing.T, s work, id string) func(context.Context) error {
		job := next(t, s, id)
		return func(ctx context.Context) error { return job.Fail(ctx, failed) }
	})
	add("BreakJob", false, queued, func(t *testing.T, s work, id string) func(context.Context) error {
		job := next(t, s, id)
		return func(ctx context.Context) error { return s.BreakJob(ctx, id, job.ID(), job.Token()) }
	})
	add("Discard", false, buried, func(t *testing.T, s work, id string) func(context.Context) error {
		job := next(t, s, id)
		rig.Is(t, job.Fail(t.Context(), failed))
		return func(ctx context.Context) error { return s.Discard(ctx, id, job.ID()) }
	})
	add("Requeue", false, queued, func(t *testing.T, s work, id string) func(context.Context) error {
		job := next(t, s, id)
		rig.Is(t, job.Fail(t.Context(), failed))
		return func(ctx context.Context) error { return s.Requeue(ctx, id, job.ID()) }
	})
	return all
}
