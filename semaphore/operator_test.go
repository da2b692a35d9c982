package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Whose permit is broken learns it, and another has one with a greater token.
func TestBreakPermit(t *testing.T) {
	b := newBench(t)
	from := time.Now().Truncate(time.Second)
	s := b.open(t, semaphore.Config{Owner: "till 7", NamePermits: true})
	other := b.open(t, semaphore.Config{})
	h := rig.Must(s.Acquire(t.Context(), "staging"))(t)
	all := rig.Must(other.Permits(t.Context(), "staging"))(t)
	if len(all) != 1 || all[0].ID != h.ID() || all[0].Owner != "till 7" || all[0].Since.Before(from) || all[0].Since.After(time.Now()) || all[0].Expired(time.Now()) {
		t.Fatalf("the permits are %+v", all)
	}
	rig.Is(t, other.BreakPermit(t.Context(), "staging", "nothing"), repo.ErrNotHeld)
	rig.Is(t, other.BreakPermit(t.Context(), "staging", ""), repo.ErrNotHeld)
	rig.Is(t, other.BreakPermit(t.Context(), "nobody's", h.ID()), repo.ErrNotHeld)
	rig.Is(t, other.BreakPermit(t.Context(), "staging", h.ID()))
	rig.Is(t, other.BreakPermit(t.Context(), "staging", h.ID()), repo.ErrNotHeld)
	rig.Is(t, other.Do(t.Context(), "staging", func(_ context.Context, p *semaphore.Permit) error {
		return other.BreakPermit(t.Context(), "staging", p.ID())
	}), repo.ErrDone, repo.ErrLockLost)
	next := rig.Must(other.TryAcquire(t.Context(), "staging"))(t)
	if next.Token() <= h.Token() {
		t.Errorf("token %d after %d", next.Token(), h.Token())
	}
	rig.Is(t, h.Extend(t.Context()), repo.ErrLockLost)
	rig.Is(t, rig.Ended(h.Context(), t), repo.ErrLockLost)
	rig.Is(t, h.Release(t.Context()), repo.ErrLockLost)
	rig.Is(t, next.Release(t.Context()))
	b.audit(t)
	wantRunning(t, s, "staging", 0)

	// A release that finds its permit gone in time took itself for the cause.
	h = rig.Must(s.Acquire(t.Context(), "staging"))(t)
	rig.Is(t, other.BreakPermit(t.Context(), "staging", h.ID()))
	rig.Is(t, h.Release(t.Context()), repo.ErrLockLost)
	// Where the row is gone, and the evidence with it, nobody can tell.
	h = rig.Must(s.Acquire(t.Context(), "staging"))(t)
	rig.Is(t, other.BreakPermit(t.Context(), "staging", h.ID()))
	rig.Is(t, other.Forget(t.Context(), "staging"))
	rig.Is(t, h.Release(t.Context()), repo.ErrOutcomeUnknown)
}

// What another has asked for meanwhile stands: it is later, and whether the request was applied
// before it nobody knows.
func TestOperatorsWhoAreOvertaken(t *testing.T) {
	for name, call := range map[string]func(*semaphore.Semaphore, context.Context) error{
		"SetLimit": func(s *semaphore.Semaphore, ctx context.Context) error { return s.SetLimit(ctx, "staging", 2) },
		"Pause":    func(s *semaphore.Semaphore, ctx context.Context) error { return s.Pause(ctx, "staging") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			other := b.open(t, semaphore.Config{})
			h := &rig.Intercept{Client: b.Client}
			h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				if n == 1 {
					rig.Is(t, other.SetLimit(t.Context(), "staging", 5))
				}
				return send()
			}
			rig.Is(t, call(rig.Must(semaphore.New(h, b.Table, semaphore.Config{}))(t), t.Context()), repo.ErrOutcomeUnknown)
			if r := rig.Must(other.Resource(t.Context(), "staging"))(t); r.Limit != 5 || !r.Paused.IsZero() {
				t.Errorf("%+v", r)
			}
		})
	}
}
