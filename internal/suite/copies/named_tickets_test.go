package copies_test

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// queues are a process whose requests are copied and another one.
func queues(t *testing.T, p *place) (mine, theirs *ticket.Queue) {
	cfg := ticket.Config{Table: repo.TableConfig{Clock: p.now}}
	theirs = rig.Must(ticket.New(p.Client, p.Table, cfg))(t)
	rig.Is(t, theirs.EnsureTable(t.Context()))
	mine = rig.Must(ticket.New(p.client(), p.Table, cfg))(t)
	_ = rig.Must(mine.List(t.Context(), "printer"))(t) // its credentials have been good
	return mine, theirs
}

// visit comes to the queue and goes.
func visit(t testing.TB, q *ticket.Queue) {
	one := rig.Must(q.Join(t.Context(), "printer"))(t)
	rig.Is(t, one.Leave(t.Context()))
}

// served takes the turn of an entity, which must be free.
func served(t testing.TB, q *ticket.Queue) {
	turn, err := q.TryLock(t.Context(), "printer")
	if rig.Is(t, err); err == nil {
		rig.Is(t, turn.Done(t.Context()))
	}
}

func joins(t *testing.T, p *place) stage {
	mine, theirs := queues(t, p)
	var own *ticket.Ticket
	return stage{
		do:     func(ctx context.Context) (err error) { own, err = mine.Join(ctx, "printer"); return err },
		others: func(int) { visit(t, theirs) },
		goesOn: func() { visit(t, theirs) },
		end:    func() { rig.Is(t, own.Leave(t.Context())) },
		anew:   func() { p.wipe(t, "queue", "/printer"); visit(t, theirs) },
		check: func(t testing.TB, _ repo.Verdict) {
			if all := rig.Must(theirs.List(t.Context(), "printer"))(t); len(all) != 1 || all[0].Number != own.Number() {
				t.Errorf("the queue is %v", all)
			}
			rig.Is(t, own.Leave(t.Context()))
			served(t, theirs)
		},
		over: func(t testing.TB) { served(t, theirs) },
	}
}

func triesTicket(t *testing.T, p *place) stage {
	mine, theirs := queues(t, p)
	var own *ticket.Turn
	var other *ticket.Ticket
	return stage{
		do:     func(ctx context.Context) (err error) { own, err = mine.TryLock(ctx, "printer"); return err },
		others: func(int) { visit(t, theirs) },
		goesOn: func() { visit(t, theirs) },
		block:  func() { other = rig.Must(theirs.Join(t.Context(), "printer"))(t) },
		free:   func() { rig.Is(t, other.Leave(t.Context())) },
		end:    func() { rig.Is(t, own.Done(t.Context())) },
		anew:   func() { p.wipe(t, "queue", "/printer"); visit(t, theirs) },
		check: func(t testing.TB, _ repo.Verdict) {
			if _, err := theirs.TryLock(t.Context(), "printer"); err == nil {
				t.Error("two hold")
			}
			rig.Is(t, own.Done(t.Context()))
			served(t, theirs)
		},
		over: func(t testing.TB) { served(t, theirs) },
	}
}

func extendsTurn(t *testing.T, p *place) stage {
	mine, theirs := queues(t, p)
	own := rig.Must(mine.TryLock(t.Context(), "printer"))(t)
	return stage{
		do:     func(ctx context.Context) error { p.later(time.Second); return own.Extend(ctx) },
		others: func(int) { visit(t, theirs) },
		goesOn: func() { p.later(time.Second); rig.Is(t, own.Extend(t.Context())) },
		end:    func() { rig.Is(t, own.Done(t.Context())) },
		anew:   func() { p.wipe(t, "queue", "/printer"); visit(t, theirs) },
		check:  func(t testing.TB, _ repo.Verdict) { rig.Is(t, own.Done(t.Context())); served(t, theirs) },
	}
}

func endsTurn(t *testing.T, p *place) stage {
	mine, theirs := queues(t, p)
	own := rig.Must(mine.TryLock(t.Context(), "printer"))(t)
	return stage{
		do:     func(ctx context.Context) error { return own.Done(ctx) },
		others: func(int) { served(t, theirs) },
		goesOn: func() { served(t, theirs) },
		end:    func() { rig.Must(mine.TryLock(t.Context(), "printer"))(t) },
		anew:   func() { p.wipe(t, "queue", "/printer"); rig.Must(theirs.TryLock(t.Context(), "printer"))(t) },
		check:  func(t testing.TB, _ repo.Verdict) { served(t, theirs) },
	}
}

func breaksTicket(t *testing.T, p *place) stage {
	mine, theirs := queues(t, p)
	other := rig.Must(theirs.TryLock(t.Context(), "printer"))(t)
	return stage{
		do:     func(ctx context.Context) error { return mine.Break(ctx, "printer", other.Number()) },
		others: func(int) { served(t, theirs) },
		goesOn: func() { served(t, theirs) },
		end:    func() { rig.Must(mine.TryLock(t.Context(), "printer"))(t) },
		anew:   func() { p.wipe(t, "queue", "/printer"); rig.Must(theirs.TryLock(t.Context(), "printer"))(t) },
		check: func(t testing.TB, _ repo.Verdict) {
			rig.Is(t, other.Done(t.Context()), repo.ErrLockLost)
			served(t, theirs)
		},
	}
}
