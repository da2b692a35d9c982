package copies_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

func init() {
	maps.Copy(calls, map[string]call{
		"semaphore, TryAcquire":                        {denied: takes, open: acquires, lands: map[moment]string{ended: aLease, lapsed: aLease, anew: aLease, refused: aLease}},
		"semaphore, Release":                           {open: releases(false)},
		"semaphore, Release to another of its process": {open: releases(true), mayLand: aLease},
		"semaphore, Permit.Extend":                     {open: extendsPermit},
		"semaphore, BreakPermit":                       {open: breaksPermit},
		"semaphore, SetLimit":                          {open: operates(setLimit), told: overtaken},
		"semaphore, Pause":                             {open: operates(pause), told: overtaken, lands: forgotten},
		"semaphore, Resume":                            {open: operates(resume), told: overtaken},
	})
}

// forgotten: Forget removes what would refuse a copy.
var forgotten = map[moment]string{anew: said}

// overtaken is what is promised where an operator's call meets the later ones of others.
var overtaken = map[moment]repo.Verdict{behind: repo.Unknown}

const room = "room"

// work are the permits and jobs of one table.
type work = fixture.Work[int]

// processes are one whose requests are copied and another one.
func processes(t *testing.T, p *place, cfg jobs.Config) (mine, theirs work) {
	cfg.Table.Clock = p.now
	theirs = fixture.OpenWork[int](t, p.Client, p.Table, cfg)
	rig.Is(t, theirs.EnsureTable(t.Context()))
	mine = fixture.OpenWork[int](t, p.client(), p.Table, cfg)
	rig.Must(mine.Resource(t.Context(), "hall"))(t) // its credentials have been good before
	rig.Must(mine.OfPermits.Resource(t.Context(), "hall"))(t)
	return mine, theirs
}

// counted looks how many permits and running jobs the resource counts.
func counted(t testing.TB, s work, queued, running int) {
	t.Helper()
	if r := rig.Must(s.Resource(t.Context(), room))(t); r.Queued != queued || r.Running != running {
		t.Errorf("%d queued, %d running; want %d and %d", r.Queued, r.Running, queued, running)
	}
	for tally, err := range s.Audit(t.Context()) {
		if rig.Is(t, err); err == nil && !tally.OK() {
			t.Errorf("the audit: %v", tally)
		}
	}
}

// uses takes a permit, which must be free, and gives it back.
func uses(t testing.TB, s work) {
	t.Helper()
	permit, err := s.TryAcquire(t.Context(), room)
	if rig.Is(t, err); err == nil {
		rig.Is(t, permit.Release(t.Context()))
	}
}

func acquires(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{})
	var own, other *semaphore.Permit
	var before int64
	return stage{
		do: func(ctx context.Context) (err error) { own, err = mine.TryAcquire(ctx, room); return err },
		others: func(int) {
			if _, err := theirs.TryAcquire(t.Context(), room); err == nil {
				t.Error("two hold")
			}
		},
		block:  func() { other = rig.Must(theirs.TryAcquire(t.Context(), room))(t); before = other.Token() },
		free:   func() { rig.Is(t, other.Release(t.Context())) },
		goesOn: func() { p.later(time.Second); rig.Is(t, own.Extend(t.Context())) },
		end:    func() { before = own.Token(); rig.Is(t, own.Release(t.Context())) },
		anew:   func() { rig.Is(t, theirs.Forget(t.Context(), room)) },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 0, 1)
			rig.Is(t, own.Release(t.Context()))
			uses(t, theirs)
		},
		over: func(t testing.TB) {
			if next := rig.Must(theirs.TryAcquire(t.Context(), room))(t); next.Token() <= before {
				t.Errorf("token %d after %d", next.Token(), before)
			}
			counted(t, theirs, 0, 1)
		},
	}
}

func releases(toAnother bool) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{})
		own := rig.Must(mine.TryAcquire(t.Context(), room))(t)
		got := make(chan *semaphore.Permit, 1)
		if toAnother {
			go func() {
				next, err := mine.Acquire(t.Context(), room)
				if err != nil {
					next = nil
				}
				got <- next
			}()
			rig.Await(t, "another stands in line", func() bool { return p.sent() >= 2 }) // and was refused
		}
		s := stage{
			do: func(ctx context.Context) error { return own.Release(ctx) },
			check: func(t testing.TB, _ repo.Verdict) {
				if toAnother {
					next := <-got
					counted(t, theirs, 0, 1)
					rig.Is(t, next.Release(t.Context()))
				}
				counted(t, theirs, 0, 0)
				uses(t, theirs)
			},
			goesOn: func() {},
		}
		if toAnother {
			s.end = func() { rig.Is(t, (<-got).Release(t.Context())) }
			return s
		}
		s.others = func(int) { uses(t, theirs) }
		s.end = func() { rig.Must(mine.TryAcquire(t.Context(), room))(t) }
		s.anew = nil
		return s
	}
}

func extendsPermit(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{})
	own := rig.Must(mine.TryAcquire(t.Context(), room))(t)
	return stage{
		do:     func(ctx context.Context) error { p.later(time.Second); return own.Extend(ctx) },
		others: func(int) { _, _ = theirs.TryAcquire(t.Context(), room) },
		goesOn: func() { p.later(time.Second); rig.Is(t, own.Extend(t.Context())) },
		end:    func() { rig.Is(t, own.Release(t.Context())) },
		anew:   func() { rig.Is(t, theirs.Forget(t.Context(), room)) },
		check:  func(t testing.TB, _ repo.Verdict) { rig.Is(t, own.Release(t.Context())); counted(t, theirs, 0, 0) },
	}
}

func breaksPermit(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{})
	other := rig.Must(theirs.TryAcquire(t.Context(), room))(t)
	return stage{
		do:     func(ctx context.Context) error { return mine.BreakPermit(ctx, room, other.ID()) },
		others: func(int) { uses(t, theirs) },
		goesOn: func() { rig.Must(theirs.TryAcquire(t.Context(), room))(t) },
		end:    func() { rig.Must(mine.TryAcquire(t.Context(), room))(t) },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 0, 0)
			rig.Is(t, other.Release(t.Context()), repo.ErrLockLost)
		},
	}
}

// operator is a call of an operator, and how to undo it.
type operator struct {
	before, do, undo func(ctx context.Context, s work) error
	done             func(r jobs.Resource) bool
}

func limitOf(n int) func(context.Context, work) error {
	return func(ctx context.Context, s work) error { return s.SetLimit(ctx, room, n) }
}

func pausing(ctx context.Context, s work) error  { return s.Pause(ctx, room) }
func resuming(ctx context.Context, s work) error { return s.Resume(ctx, room) }

var (
	setLimit = operator{limitOf(2), limitOf(7), limitOf(2), func(r jobs.Resource) bool { return r.Limit == 7 }}
	pause    = operator{limitOf(2), pausing, resuming, func(r jobs.Resource) bool { return !r.Paused.IsZero() }}
	resume   = operator{pausing, resuming, pausing, func(r jobs.Resource) bool { return r.Paused.IsZero() }}
)

func operates(o operator) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{})
		rig.Is(t, o.before(t.Context(), theirs))
		undone := false
		return stage{
			do: func(ctx context.Context) error { return o.do(ctx, mine) },
			others: func(i int) {
				undone = true
				do := o.undo
				if i%2 == 1 && i < 11 {
					do = o.do
				}
				rig.Is(t, errors.Join(do(t.Context(), theirs), o.undo(t.Context(), theirs)))
			},
			goesOn: func() { uses(t, forced(t, theirs, o)) },
			end:    func() { rig.Is(t, o.undo(t.Context(), theirs)) },
			anew: func() {
				rig.Is(t, errors.Join(theirs.Forget(t.Context(), room), o.undo(t.Context(), theirs)))
			},
			check: func(t testing.TB, _ repo.Verdict) {
				if r := rig.Must(theirs.Resource(t.Context(), room))(t); o.done(r) == undone {
					t.Errorf("it is done: %v; others have undone it: %v", o.done(r), undone)
				}
			},
		}
	}
}

// forced is a resource that goes on, for as long as somebody uses it.
func forced(t *testing.T, s work, o operator) work {
	if r := rig.Must(s.Resource(t.Context(), room))(t); !r.Paused.IsZero() {
		rig.Is(t, o.undo(t.Context(), s))
	}
	return s
}
