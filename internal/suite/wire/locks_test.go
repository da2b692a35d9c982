package wire

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// locked expects to be refused by a lock.
func locked(err error) error {
	if errors.Is(err, repo.ErrLocked) {
		return nil
	}
	return fmt.Errorf("not refused by the lock: %w", err)
}

// onceOperations are those of an id that is new, and of one that is completed.
func onceOperations() (all []operation) {
	for _, again := range []bool{false, true} {
		name := map[bool]string{false: "Do", true: "Do, again"}[again]
		all = append(all, operation{name: "once: " + name, prepare: func(t *testing.T, b *bench) func() error {
			s := rig.Must(once.New(b.Client, b.Table, once.Config{Lease: lease, Owner: "owner"}))(t)
			rig.Is(t, s.EnsureTable(t.Context()))
			do := func() error {
				_, err := once.Do(t.Context(), s, "order", func(context.Context, once.Run) (string, error) { return "paid", nil })
				return err
			}
			if again {
				rig.Is(t, do())
			}
			return do
		}})
	}
	all = append(all, operation{name: "once: Try", prepare: func(t *testing.T, b *bench) func() error {
		s := rig.Must(once.New(b.Client, b.Table, once.Config{Lease: lease, Owner: "owner"}))(t)
		rig.Is(t, s.EnsureTable(t.Context()))
		return func() error {
			_, err := once.Try(t.Context(), s, "order", func(context.Context, once.Run) (string, error) { return "paid", nil })
			return err
		}
	}}, operation{name: "once: Try that is refused", prepare: func(t *testing.T, b *bench) func() error {
		s := rig.Must(once.New(b.Client, b.Table, once.Config{Lease: lease, Owner: "owner"}))(t)
		rig.Is(t, s.EnsureTable(t.Context()))
		began, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := once.Do(t.Context(), s, "order", func(context.Context, once.Run) (string, error) { close(began); <-end; return "paid", nil })
			ended <- err
		}()
		<-began
		t.Cleanup(func() { close(end); rig.Is(t, <-ended) })
		return func() error {
			_, err := once.Try(t.Context(), s, "order", func(context.Context, once.Run) (string, error) { return "", nil })
			return locked(err)
		}
	}}, operation{name: "once: Do, and RequireIn", prepare: func(t *testing.T, b *bench) func() error {
		s := rig.Must(once.New(b.Client, b.Table, once.Config{Lease: lease, Owner: "owner"}))(t)
		rig.Is(t, s.EnsureTable(t.Context()))
		return func() error {
			_, err := once.Do(t.Context(), s, "order", func(ctx context.Context, run once.Run) (string, error) {
				return "paid", txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return tx.Require(run) })
			})
			return err
		}
	}})
	return append(all, operation{name: "once: Do that fails", prepare: func(t *testing.T, b *bench) func() error {
		s := rig.Must(once.New(b.Client, b.Table, once.Config{Lease: lease, Owner: "owner"}))(t)
		rig.Is(t, s.EnsureTable(t.Context()))
		return func() error {
			failed := errors.New("failed")
			_, err := once.Do(t.Context(), s, "order", func(context.Context, once.Run) (string, error) { return "", failed })
			if errors.Is(err, failed) {
				return nil
			}
			return err
		}
	}})
}

func mutexOperations() (all []operation) {
	for _, mode := range []mutex.Mode{mutex.FailClosed, mutex.FailOpen} {
		cfg := mutex.Config{Mode: mode, Owner: "owner", Race: true}
		if mode == mutex.FailOpen {
			cfg.Lease = lease
		}
		open := func(t *testing.T, b *bench) *mutex.Locker {
			l := rig.Must(mutex.New(b.Client, b.Table, cfg))(t)
			rig.Is(t, l.EnsureTable(t.Context()))
			return l
		}
		free := func(name string, do func(context.Context, *mutex.Locker) error) {
			all = append(all, operation{name: fmt.Sprintf("mutex, %v, racing: %s", mode, name), prepare: func(t *testing.T, b *bench) func() error {
				l := open(t, b)
				return func() error { return do(t.Context(), l) }
			}})
		}
		held := func(name string, do func(context.Context, *mutex.Locker, *mutex.Lock) error) {
			all = append(all, operation{name: fmt.Sprintf("mutex, %v, racing: %s", mode, name), prepare: func(t *testing.T, b *bench) func() error {
				l := open(t, b)
				lock := rig.Must(l.Lock(t.Context(), "report"))(t)
				return func() error { return do(t.Context(), l, lock) }
			}})
		}
		free("Lock", func(ctx context.Context, l *mutex.Locker) error { _, err := l.Lock(ctx, "report"); return err })
		free("TryLock", func(ctx context.Context, l *mutex.Locker) error { _, err := l.TryLock(ctx, "report"); return err })
		free("Do", func(ctx context.Context, l *mutex.Locker) error {
			return l.Do(ctx, "report", func(context.Context, *mutex.Lock) error { return nil })
		})
		held("TryLock of a held lock", func(ctx context.Context, l *mutex.Locker, _ *mutex.Lock) error {
			_, err := l.TryLock(ctx, "report")
			return locked(err)
		})
		held("Unlock", func(ctx context.Context, _ *mutex.Locker, lock *mutex.Lock) error { return lock.Unlock(ctx) })
		held("SetPayload", func(ctx context.Context, _ *mutex.Locker, lock *mutex.Lock) error {
			return lock.SetPayload(ctx, []byte("half done"))
		})
		held("Break", func(ctx context.Context, l *mutex.Locker, lock *mutex.Lock) error {
			return l.Break(ctx, "report", lock.Token())
		})
		held("Release", func(ctx context.Context, l *mutex.Locker, lock *mutex.Lock) error {
			return l.Release(ctx, "report", lock.ID())
		})
		held("Inspect", func(ctx context.Context, l *mutex.Locker, _ *mutex.Lock) error {
			_, err := l.Inspect(ctx, "report")
			return err
		})
		held("List", func(ctx context.Context, l *mutex.Locker, _ *mutex.Lock) error {
			for _, err := range l.List(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		held("RequireIn", func(ctx context.Context, _ *mutex.Locker, lock *mutex.Lock) error {
			return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return tx.Require(lock) })
		})
		if mode == mutex.FailOpen {
			held("Extend", func(ctx context.Context, _ *mutex.Locker, lock *mutex.Lock) error { return lock.Extend(ctx) })
			continue
		}
		free("LockAll of two, and Unlock", func(ctx context.Context, l *mutex.Locker) error {
			group, err := l.LockAll(ctx, "b", "a")
			if err != nil {
				return err
			}
			return group.Unlock(ctx)
		})
		all[len(all)-1].anyOrder = true // they are given back at the same time
	}
	return all
}

// queuedMutexOperations are those that the queue on the row makes different.
func queuedMutexOperations() (all []operation) {
	for _, mode := range []mutex.Mode{mutex.FailClosed, mutex.FailOpen} {
		cfg := mutex.Config{Mode: mode, Owner: "owner"}
		if mode == mutex.FailOpen {
			cfg.Lease = lease
		}
		open := func(t *testing.T, r *rig.Rig) *mutex.Locker { return rig.Must(mutex.New(r.Client, r.Table, cfg))(t) }
		add := func(name string, looks bool, prepare func(t *testing.T, b *bench, l, peer *mutex.Locker) func() error) {
			all = append(all, operation{name: fmt.Sprintf("mutex, %v: %s", mode, name), looks: looks, prepare: func(t *testing.T, b *bench) func() error {
				l := open(t, b.Rig)
				rig.Is(t, l.EnsureTable(t.Context()))
				return prepare(t, b, l, open(t, b.Peer()))
			}})
		}
		add("Lock", false, func(t *testing.T, _ *bench, l, _ *mutex.Locker) func() error {
			return func() error { _, err := l.Lock(t.Context(), "report"); return err }
		})
		add("Do", false, func(t *testing.T, _ *bench, l, _ *mutex.Locker) func() error {
			return func() error {
				return l.Do(t.Context(), "report", func(context.Context, *mutex.Lock) error { return nil })
			}
		})
		add("Extend", false, func(t *testing.T, _ *bench, l, _ *mutex.Locker) func() error {
			lock := rig.Must(l.Lock(t.Context(), "report"))(t)
			return func() error { return lock.Extend(t.Context()) }
		})
		add("Release", false, func(t *testing.T, _ *bench, l, _ *mutex.Locker) func() error {
			lock := rig.Must(l.Lock(t.Context(), "report"))(t)
			return func() error { return l.Release(t.Context(), "report", lock.ID()) }
		})
		add("Unlock, with one who waits", false, func(t *testing.T, _ *bench, l, peer *mutex.Locker) func() error {
			lock := rig.Must(l.Lock(t.Context(), "report"))(t)
			got := make(chan error, 1)
			go func() { _, err := peer.Lock(t.Context(), "report"); got <- err }()
			awaitQueue(t, peer)
			return func() error { return errors.Join(lock.Unlock(t.Context()), <-got) }
		})
		add("Lock, second in line", true, func(t *testing.T, _ *bench, l, peer *mutex.Locker) func() error {
			lock := rig.Must(peer.Lock(t.Context(), "report"))(t)
			return func() error {
				got := make(chan error, 1)
				go func() { _, err := l.Lock(t.Context(), "report"); got <- err }()
				awaitQueue(t, peer)
				return errors.Join(lock.Unlock(t.Context()), <-got)
			}
		})
		add("Lock that leaves the queue", true, func(t *testing.T, _ *bench, l, peer *mutex.Locker) func() error {
			rig.Must(peer.Lock(t.Context(), "report"))(t)
			return func() error {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				got := make(chan error, 1)
				go func() { _, err := l.Lock(ctx, "report"); got <- err }()
				awaitQueue(t, peer)
				leave()
				return locked(<-got)
			}
		})
		add("Lock after a Break", true, func(t *testing.T, _ *bench, l, peer *mutex.Locker) func() error {
			lock := rig.Must(peer.Lock(t.Context(), "report"))(t)
			return func() error {
				got := make(chan error, 1)
				go func() { _, err := l.Lock(t.Context(), "report"); got <- err }()
				awaitQueue(t, peer)
				return errors.Join(peer.Break(t.Context(), "report", lock.Token()), <-got)
			}
		})
	}
	return all
}

// awaitQueue waits until somebody stands in the queue of the lock.
func awaitQueue(t *testing.T, l *mutex.Locker) {
	rig.Await(t, "somebody stands in the queue", func() bool {
		info, err := l.Inspect(t.Context(), "report")
		return err == nil && len(info.Waiting) > 0
	})
}

func ticketOperations() (all []operation) {
	const entity = "order-7"
	open := func(t *testing.T, b *bench) *ticket.Queue {
		q := rig.Must(ticket.New(b.Client, b.Table, ticket.Config{Lease: lease}))(t)
		rig.Is(t, q.EnsureTable(t.Context()))
		return q
	}
	free := func(name string, do func(context.Context, *ticket.Queue) error) {
		all = append(all, operation{name: "ticket: " + name, prepare: func(t *testing.T, b *bench) func() error {
			q := open(t, b)
			return func() error { return do(t.Context(), q) }
		}})
	}
	behind := func(name string, do func(context.Context, *ticket.Queue, *ticket.Turn, *ticket.Ticket) error) {
		all = append(all, operation{name: "ticket: " + name, prepare: func(t *testing.T, b *bench) func() error {
			q := open(t, b)
			turn := rig.Must(q.Lock(t.Context(), entity))(t)
			waits := rig.Must(q.Join(t.Context(), entity))(t)
			return func() error { return do(t.Context(), q, turn, waits) }
		}})
	}
	free("Join", func(ctx context.Context, q *ticket.Queue) error { _, err := q.Join(ctx, entity); return err })
	free("Lock", func(ctx context.Context, q *ticket.Queue) error { _, err := q.Lock(ctx, entity); return err })
	free("TryLock", func(ctx context.Context, q *ticket.Queue) error { _, err := q.TryLock(ctx, entity); return err })
	free("Do", func(ctx context.Context, q *ticket.Queue) error {
		return q.Do(ctx, entity, func(context.Context, *ticket.Turn) error { return nil })
	})
	free("Join and Wait, with nobody before", func(ctx context.Context, q *ticket.Queue) error {
		mine, err := q.Join(ctx, entity)
		if err == nil {
			_, err = mine.Wait(ctx)
		}
		return err
	})
	behind("TryLock behind others", func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn, _ *ticket.Ticket) error {
		_, err := q.TryLock(ctx, entity)
		return locked(err)
	})
	behind("Join behind others", func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn, _ *ticket.Ticket) error {
		_, err := q.Join(ctx, entity)
		return err
	})
	behind("Position", func(ctx context.Context, _ *ticket.Queue, _ *ticket.Turn, waits *ticket.Ticket) error {
		_, err := waits.Position(ctx)
		return err
	})
	behind("Leave", func(ctx context.Context, _ *ticket.Queue, _ *ticket.Turn, waits *ticket.Ticket) error {
		return waits.Leave(ctx)
	})
	behind("Done", func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn, _ *ticket.Ticket) error {
		return turn.Done(ctx)
	})
	behind("Done, and Wait of the next", func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn, waits *ticket.Ticket) error {
		if err := turn.Done(ctx); err != nil {
			return err
		}
		_, err := waits.Wait(ctx)
		return err
	})
	behind("Extend", func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn, _ *ticket.Ticket) error {
		return turn.Extend(ctx)
	})
	behind("RequireIn", func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn, _ *ticket.Ticket) error {
		return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return tx.Require(turn) })
	})
	behind("Break", func(ctx context.Context, q *ticket.Queue, turn *ticket.Turn, _ *ticket.Ticket) error {
		return q.Break(ctx, entity, turn.Number())
	})
	behind("List", func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn, _ *ticket.Ticket) error {
		_, err := q.List(ctx, entity)
		return err
	})
	return all
}
