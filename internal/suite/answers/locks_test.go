package answers_test

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/ticket"
)

func lockCalls() (all []call) {
	all = append(mutexCalls("mutex, fail-closed", mutex.Config{}), mutexCalls("mutex, fail-open, fair", mutex.Config{Mode: mutex.FailOpen, Fair: true})...)
	return append(append(all, onceCalls()...), ticketCalls()...)
}

func mutexCalls(kind string, cfg mutex.Config) (all []call) {
	free := func(t *testing.T, p *place, id string) func(context.Context) int {
		other := rig.Must(mutex.New(p.peer, p.names, cfg))(t)
		return func(ctx context.Context) int {
			l, err := other.TryLock(ctx, id)
			if err != nil {
				return 0
			}
			rig.Is(t, l.Unlock(ctx))
			return 1
		}
	}
	noted := func(t *testing.T, p *place, id string) func(context.Context) int {
		other := rig.Must(mutex.New(p.peer, p.names, cfg))(t)
		return func(ctx context.Context) int { return len(rig.Must(other.Inspect(ctx, id))(t).Payload) }
	}
	taking := func(name string, do func(context.Context, *mutex.Locker, string) error) {
		all = append(all, call{name: kind + "." + name, takes: true, open: func(t *testing.T, p *place, c client, id string) action {
			l := rig.Must(mutex.New(c, p.names, cfg))(t)
			rig.Is(t, rig.Must(l.Lock(t.Context(), "other "+id))(t).Unlock(t.Context()))
			return action{func(ctx context.Context) error { return do(ctx, l, id) }, func(ctx context.Context) int { return 1 - free(t, p, id)(ctx) }, closed(l.Close)}
		}})
	}
	holding := func(name string, counts func(*testing.T, *place, string) func(context.Context) int, do func(context.Context, *mutex.Locker, *mutex.Lock, string) error) {
		all = append(all, call{name: kind + "." + name, open: func(t *testing.T, p *place, c client, id string) action {
			l := rig.Must(mutex.New(c, p.names, cfg))(t)
			rig.Is(t, rig.Must(l.Lock(t.Context(), "other "+id))(t).Unlock(t.Context()))
			held := rig.Must(l.Lock(t.Context(), id))(t)
			return action{func(ctx context.Context) error { return do(ctx, l, held, id) }, counts(t, p, id), closed(l.Close)}
		}})
	}
	taking("Lock", func(ctx context.Context, l *mutex.Locker, id string) error { return justErr(l.Lock(ctx, id)) })
	taking("TryLock", func(ctx context.Context, l *mutex.Locker, id string) error { return justErr(l.TryLock(ctx, id)) })
	holding("Unlock", free, func(ctx context.Context, _ *mutex.Locker, held *mutex.Lock, _ string) error { return held.Unlock(ctx) })
	holding("Release", free, func(ctx context.Context, l *mutex.Locker, held *mutex.Lock, id string) error {
		return l.Release(ctx, id, held.ID())
	})
	holding("Break", free, func(ctx context.Context, l *mutex.Locker, held *mutex.Lock, id string) error {
		return l.Break(ctx, id, held.Token())
	})
	holding("SetPayload", noted, func(ctx context.Context, _ *mutex.Locker, held *mutex.Lock, _ string) error {
		return held.SetPayload(ctx, []byte("x"))
	})
	return all
}

// closed ends what runs behind a call. Whether all can be given back is not the question.
func closed(end func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_ = end(ctx)
	}
}

func onceCalls() []call {
	return []call{onceCall("once.Do", once.Do[int]), onceCall("once.Try", once.Try[int])}
}

func onceCall(name string, runOnce func(context.Context, *once.Store, string, func(context.Context, once.Run) (int, error)) (int, error)) call {
	return call{name: name, open: func(t *testing.T, p *place, c client, id string) action {
		s, other := rig.Must(once.New(c, p.operations, once.Config{}))(t), rig.Must(once.New(p.peer, p.operations, once.Config{}))(t)
		ran := 0
		do := func(s *once.Store, id string) func(context.Context) error {
			return func(ctx context.Context) error {
				return justErr(runOnce(ctx, s, id, func(context.Context, once.Run) (int, error) { ran++; return 7, nil }))
			}
		}
		rig.Is(t, do(s, "other "+id)(t.Context()))
		ran = 0
		return action{run: do(s, id), applied: func(ctx context.Context) int {
			completed := 1
			if before := ran; before == 0 {
				return 0 // nothing that could be repeated has happened
			}
			_, err := once.Do(ctx, other, id, func(context.Context, once.Run) (int, error) { completed = 0; return 7, nil })
			rig.Is(t, err)
			return max(completed, ran*completed)
		}}
	}}
}

func ticketCalls() (all []call) {
	cfg := ticket.Config{}
	places := func(t *testing.T, p *place, id string) func(context.Context) int {
		other := rig.Must(ticket.New(p.peer, p.queues, cfg))(t)
		return func(ctx context.Context) int { return len(rig.Must(other.List(ctx, id))(t)) }
	}
	open := func(t *testing.T, p *place, c client, id string) *ticket.Queue {
		q := rig.Must(ticket.New(c, p.queues, cfg))(t)
		rig.Is(t, rig.Must(q.Lock(t.Context(), "other "+id))(t).Done(t.Context()))
		return q
	}
	left := func(t *testing.T, p *place, id string) func(context.Context) int {
		n := places(t, p, id)
		return func(ctx context.Context) int { return 1 - n(ctx) }
	}
	taking := func(name string, do func(context.Context, *ticket.Queue, string) error) {
		all = append(all, call{name: "ticket." + name, takes: true, open: func(t *testing.T, p *place, c client, id string) action {
			q := open(t, p, c, id)
			return action{func(ctx context.Context) error { return do(ctx, q, id) }, places(t, p, id), closed(q.Close)}
		}})
	}
	holding := func(name string, do func(context.Context, *ticket.Queue, *ticket.Turn) error) {
		all = append(all, call{name: "ticket." + name, open: func(t *testing.T, p *place, c client, id string) action {
			q := open(t, p, c, id)
			turn := rig.Must(q.Lock(t.Context(), id))(t)
			return action{func(ctx context.Context) error { return do(ctx, q, turn) }, left(t, p, id), closed(q.Close)}
		}})
	}
	taking("Join", func(ctx context.Context, q *ticket.Queue, id string) error { return justErr(q.Join(ctx, id)) })
	taking("Lock", func(ctx context.Context, q *ticket.Queue, id string) error { return justErr(q.Lock(ctx, id)) })
	taking("TryLock", func(ctx context.Context, q *ticket.Queue, id string) error { return justErr(q.TryLock(ctx, id)) })
	holding("Done", func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn) error { return turn.Done(ctx) })
	holding("Break", func(ctx context.Context, q *ticket.Queue, turn *ticket.Turn) error {
		return q.Break(ctx, turn.Entity(), turn.Number())
	})
	all = append(all, call{name: "ticket.Leave", open: func(t *testing.T, p *place, c client, id string) action {
		q := open(t, p, c, id)
		place := rig.Must(q.Join(t.Context(), id))(t)
		return action{place.Leave, left(t, p, id), closed(q.Close)}
	}})
	return all
}
