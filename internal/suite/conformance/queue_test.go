package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// unlocked is a call that changes an item without its lock: to the note "theirs", or it
// deletes the item.
type unlocked func(ctx context.Context, t *testing.T, items *repo.Table[fixture.Account], stored fixture.Account) error

var (
	theirs = expression.Set(expression.Name("note"), expression.Value("theirs"))

	writersWithoutTheLock = map[string]unlocked{
		"optimistic Update": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], _ fixture.Account) error {
			_, err := r.Update(ctx, fixture.Key, writeTheirs)
			return err
		}),
		"optimistic Upsert": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], _ fixture.Account) error {
			_, err := r.Upsert(ctx, fixture.Key, writeTheirs)
			return err
		}),
		"optimistic Apply": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], _ fixture.Account) error {
			_, err := r.Apply(ctx, fixture.Key, theirs)
			return err
		}),
		"optimistic Apply under an id": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], _ fixture.Account) error {
			_, err := r.Once("a message").Apply(ctx, fixture.Key, theirs)
			return err
		}),
		"optimistic Delete": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], _ fixture.Account) error {
			return r.Delete(ctx, fixture.Key)
		}),
		"optimistic Remove": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], stored fixture.Account) error {
			return r.Remove(ctx, stored)
		}),
		"optimistic Save": byVersion(func(ctx context.Context, r *optimistic.Repository[fixture.Account], stored fixture.Account) error {
			stored.Note = "theirs"
			_, err := r.Save(ctx, stored)
			return err
		}),
		"pessimistic Apply": func(ctx context.Context, t *testing.T, items *repo.Table[fixture.Account], _ fixture.Account) error {
			_, err := rig.Must(pessimistic.New(items, pessimistic.Config{}))(t).Apply(ctx, fixture.Key, theirs)
			return err
		},
		"nolock Put": byEvent(func(ctx context.Context, r *nolock.Repository[fixture.Account], stored fixture.Account) error {
			stored.Note, stored.At = "theirs", 5
			return r.Put(ctx, stored)
		}),
		"nolock Apply": byEvent(func(ctx context.Context, r *nolock.Repository[fixture.Account], _ fixture.Account) error {
			return r.Apply(ctx, fixture.Key, 5, theirs)
		}),
		"nolock DeleteAt": byEvent(func(ctx context.Context, r *nolock.Repository[fixture.Account], _ fixture.Account) error {
			return r.DeleteAt(ctx, fixture.Key, 5)
		}),
		"nolock Update": byEvent(func(ctx context.Context, r *nolock.Repository[fixture.Account], _ fixture.Account) error {
			_, err := r.Update(ctx, fixture.Key, writeTheirs)
			return err
		}),
		"nolock Delete": byEvent(func(ctx context.Context, r *nolock.Repository[fixture.Account], _ fixture.Account) error {
			return r.Delete(ctx, fixture.Key)
		}),
	}
)

func writeTheirs(_ context.Context, a *fixture.Account) error {
	a.Note, a.At = "theirs", 5
	return nil
}

func byVersion(call func(context.Context, *optimistic.Repository[fixture.Account], fixture.Account) error) unlocked {
	return func(ctx context.Context, t *testing.T, items *repo.Table[fixture.Account], stored fixture.Account) error {
		return call(ctx, rig.Must(optimistic.New(items, optimistic.Config{}))(t), stored)
	}
}

func byEvent(call func(context.Context, *nolock.Repository[fixture.Account], fixture.Account) error) unlocked {
	return func(ctx context.Context, t *testing.T, items *repo.Table[fixture.Account], stored fixture.Account) error {
		return call(ctx, rig.Must(nolock.New(items, nolock.Config{}))(t), stored)
	}
}

// While processes wait in the queue on an item its lock is never free. A writer without
// the lock has its place in the queue: behind who came before, before who came later.
func TestWritersWithoutTheLockHaveTheirPlaceInTheQueue(t *testing.T) {
	for name, write := range writersWithoutTheLock {
		t.Run(name, func(t *testing.T) {
			w, _ := fixture.NewWith(t, fixture.Key)
			items := w.Items(t, w.Client)
			queued := func(n int) {
				t.Helper()
				rig.Await(t, fmt.Sprintf("%d stand in the queue", n), func() bool {
					return len(items.State(w.Raw(t, fixture.Key)).Waiting) == n
				})
			}
			stored := rig.Must(items.Get(t.Context(), fixture.Key))(t)
			acquire := func() <-chan holdOrError {
				l := w.Locker(t, w.Client, lockedread.Config{Fair: true})
				return await(func() holdOrError { h, err := l.Acquire(t.Context(), fixture.Key); return holdOrError{h, err} })
			}
			holder := (<-acquire()).held(t)
			before := acquire()
			queued(1)
			peer := w.Peer()
			written := await(func() error { return write(t.Context(), t, w.Items(t, peer.Client), stored) })
			queued(2)
			after := acquire()
			queued(3)
			rig.Is(t, holder.Release(t.Context()))
			first := (<-before).held(t)
			if got := first.Item(); got.Note != "" {
				t.Errorf("who came before found %+v", got)
			}
			rig.Is(t, first.Release(t.Context()))
			last := <-after
			rig.Is(t, <-written)
			if strings.Contains(name, "Delete") || strings.Contains(name, "Remove") {
				rig.Is(t, last.err, repo.ErrNotFound)
			} else {
				last := last.held(t)
				if got := last.Item(); got.Note != "theirs" {
					t.Errorf("who came later found %+v", got)
				}
				rig.Is(t, last.Release(t.Context()))
			}
			if raw := w.Raw(t, fixture.Key); raw["lockedBy"] != nil || raw["lockQueue"] != nil {
				t.Errorf("left on the item: %v", raw)
			}
			// The refused try, the enqueue, the write under the lock, its end; a mark or two
			// that keep a copy of the refused try out.
			if got := peer.Count.Count("UpdateItem") + peer.Count.Count("DeleteItem"); got > 6 {
				t.Errorf("%d writes", got)
			}
		})
	}
}

// holdOrError is what an acquisition gave.
type holdOrError struct {
	hold *lockedread.Held[fixture.Account]
	err  error
}

func (h holdOrError) held(t *testing.T) *lockedread.Held[fixture.Account] {
	t.Helper()
	return rig.Must(h.hold, h.err)(t)
}

// await runs a call beside the test.
func await[V any](call func() V) <-chan V {
	done := make(chan V, 1)
	go func() { done <- call() }()
	return done
}

// Who asks not to wait for a lock does not wait in its queue.
func TestWritersThatDoNotWaitStandInNoQueue(t *testing.T) {
	w, _ := fixture.NewWith(t, fixture.Key)
	items := w.Items(t, w.Client)
	l := w.Locker(t, w.Client, lockedread.Config{Fair: true})
	holder := rig.Must(l.Acquire(t.Context(), fixture.Key))(t)
	next := await(func() holdOrError {
		h, err := w.Locker(t, w.Client, lockedread.Config{Fair: true}).Acquire(t.Context(), fixture.Key)
		return holdOrError{h, err}
	})
	rig.Await(t, "one stands in the queue", func() bool { return len(items.State(w.Raw(t, fixture.Key)).Waiting) == 1 })
	_, err := rig.Must(optimistic.New(items, optimistic.Config{FailLocked: true}))(t).Apply(t.Context(), fixture.Key, theirs)
	rig.Is(t, err, repo.ErrLocked)
	err = rig.Must(nolock.New(items, nolock.Config{FailLocked: true}))(t).Apply(t.Context(), fixture.Key, 5, theirs)
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, holder.Release(t.Context()))
	rig.Is(t, (<-next).held(t).Release(t.Context()))
}

// A transaction over items that it does not lock has its place in the queue of each.
func TestTransactionsWithoutLocksHaveTheirPlaceInTheQueue(t *testing.T) {
	w, _ := fixture.NewWith(t, fixture.Key)
	items := w.Items(t, w.Client)
	queued := func(n int) {
		t.Helper()
		rig.Await(t, fmt.Sprintf("%d stand in the queue", n), func() bool { return len(items.State(w.Raw(t, fixture.Key)).Waiting) == n })
	}
	acquire := func() <-chan holdOrError {
		l := w.Locker(t, w.Client, lockedread.Config{})
		return await(func() holdOrError { h, err := l.Acquire(t.Context(), fixture.Key); return holdOrError{h, err} })
	}
	holder := (<-acquire()).held(t)
	before := acquire()
	queued(1)
	versions := rig.Must(optimistic.New(w.Items(t, w.Peer().Client), optimistic.Config{}))(t)
	written := await(func() error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			_, err := versions.In(tx).Update(ctx, fixture.Key, writeTheirs)
			return err
		})
	})
	queued(2)
	after := acquire()
	queued(3)
	rig.Is(t, holder.Release(t.Context()))
	rig.Is(t, (<-before).held(t).Release(t.Context()))
	rig.Is(t, <-written)
	last := (<-after).held(t)
	if got := last.Item(); got.Note != "theirs" {
		t.Errorf("who came later found %+v", got)
	}
	rig.Is(t, last.Release(t.Context()))
}
