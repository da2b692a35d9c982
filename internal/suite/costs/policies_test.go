package costs_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// The policies of docs/operations.md against the requests that calls send:
// waiting, operators' calls and those beside the usual way included.
func TestPoliciesAllowWhatIsSent(t *testing.T) {
	document := string(rig.Must(os.ReadFile("../../../docs/operations.md"))(t))
	ctx, key := t.Context(), repo.Key{Partition: "p", Sort: 1}
	item := fixture.Account{ID: "p", Seq: 1, At: 1}
	change := func(_ context.Context, a *fixture.Account) error { a.Balance++; a.At++; return nil }
	shortly := func(call func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		rig.Is(t, call(ctx), repo.ErrLocked)
	}
	all := func(r repo.Repository[fixture.Account]) {
		rig.Must(r.Create(ctx, item))(t)
		rig.Must(r.Get(ctx, key))(t)
		rig.Must(r.Update(ctx, key, change))(t)
		rig.Is(t, r.Delete(ctx, key))
		rig.Must(r.Upsert(ctx, key, func(_ context.Context, a *fixture.Account) error { a.At = time.Now().UnixMilli(); return nil }))(t)
	}
	for row, calls := range map[string]func(w *fixture.Fixture){
		"`nolock`":     func(w *fixture.Fixture) { all(rig.Must(nolock.New(w.Items(t, w.Client), nolock.Config{}))(t)) },
		"`optimistic`": func(w *fixture.Fixture) { all(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)) },
		"`pessimistic`, `lockedread`": func(w *fixture.Fixture) {
			table := w.Items(t, w.Client)
			for _, s := range fixture.Strategies() {
				if s.Name == "pessimistic, combining" {
					all(s.Open(t, w, w.Client))
				}
			}
			l := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
			other := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
			held := rig.Must(l.Acquire(ctx, key))(t)
			shortly(func(ctx context.Context) error { _, err := other.Acquire(ctx, key); return err })
			rig.Must(table.Inspect(ctx, key))(t)
			rig.Is(t, l.Break(ctx, key, held.Token()))
		},
		"`mutex`": func(w *fixture.Fixture) {
			for _, cfg := range []mutex.Config{{}, {Mode: mutex.FailOpen}, {Race: true}, {Mode: mutex.FailOpen, Race: true}} {
				name := rig.New(t).Table
				l, other := rig.Must(mutex.New(w.Client, name, cfg))(t), rig.Must(mutex.New(w.Client, name, cfg))(t)
				rig.Is(t, l.EnsureTable(ctx))
				w.Count.Reset()
				held := rig.Must(l.Lock(ctx, "x"))(t)
				shortly(func(ctx context.Context) error { _, err := other.Lock(ctx, "x"); return err })
				rig.Is(t, held.Extend(ctx))
				rig.Must(l.Inspect(ctx, "x"))(t)
				rig.Is(t, l.Release(ctx, "x", held.ID()))
				// Another takes it, whom the handle that is left of the first does not hold up.
				rig.Is(t, l.Break(ctx, "x", rig.Must(other.Lock(ctx, "x"))(t).Token()))
				for _, err := range l.List(ctx) {
					rig.Is(t, err)
				}
			}
		},
		"`repo:\"unique\"`": func(w *fixture.Fixture) {
			table := rig.Must(repo.NewTable[member](w.Client, rig.New(t).Table, repo.TableConfig{}))(t)
			rig.Is(t, table.EnsureTable(ctx))
			w.Count.Reset()
			s := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
			rig.Must(s.Create(ctx, member{ID: "a", Email: "a"}))(t)
			_, err := s.Create(ctx, member{ID: "b", Email: "a"})
			rig.Is(t, err, repo.ErrNotUnique)
			rig.Must(s.Save(ctx, member{ID: "a", Email: "b", Version: 1}))(t)
			rig.Is(t, s.Delete(ctx, repo.Key{Partition: "a"}))
		},
		"`delegate`": func(w *fixture.Fixture) {
			items := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
			rig.Must(items.Create(ctx, item))(t)
			mail := rig.Must(delegate.NewMailTable(w.Client, rig.New(t).Table, repo.TableConfig{}))(t)
			rig.Is(t, mail.EnsureTable(ctx))
			w.Count.Reset()
			var all sync.WaitGroup
			for range 4 {
				c := rig.Must(delegate.New(items, delegate.Config{Mail: mail}))(t)
				add := rig.Must(delegate.Command(c, "add", func(ctx context.Context, a *fixture.Account, _ int) (int, error) { return 0, change(ctx, a) }))(t)
				all.Go(func() {
					for range 5 {
						_, err := add.Do(ctx, key, 0)
						rig.Is(t, err)
					}
					rig.Is(t, c.Close(ctx))
				})
			}
			all.Wait()
			rig.Must(rig.Must(delegate.MailsOf(items.Table().KeyTable, mail))(t).Of(ctx, key))(t)
		},
		"`once`": func(w *fixture.Fixture) {
			s := rig.Must(once.New(w.Client, rig.New(t).Table, once.Config{}))(t)
			rig.Is(t, s.EnsureTable(ctx))
			w.Count.Reset()
			do := func(ctx context.Context, fn func() error) error {
				_, err := once.Do(ctx, s, "x", func(context.Context, once.Run) (int, error) { return 1, fn() })
				return err
			}
			failed := errors.New("failed")
			rig.Is(t, do(ctx, func() error {
				shortly(func(ctx context.Context) error { return do(ctx, nil) })
				return failed
			}), failed)
			rig.Is(t, do(ctx, func() error { return nil }))
			rig.Is(t, do(ctx, nil)) // it gives what is kept
		},
		"`ticket`": func(w *fixture.Fixture) {
			q := rig.Must(ticket.New(w.Client, rig.New(t).Table, ticket.Config{}))(t)
			rig.Is(t, q.EnsureTable(ctx))
			w.Count.Reset()
			turn := rig.Must(q.Lock(ctx, "x"))(t)
			shortly(func(ctx context.Context) error { _, err := q.Lock(ctx, "x"); return err })
			rig.Must(q.List(ctx, "x"))(t)
			rig.Is(t, turn.Done(ctx))
		},
		"`semaphore`": func(w *fixture.Fixture) {
			s := rig.Must(semaphore.New(w.Client, rig.New(t).Table, semaphore.Config{}))(t)
			rig.Is(t, s.EnsureTable(ctx))
			w.Count.Reset()
			held := rig.Must(s.Acquire(ctx, "x"))(t)
			shortly(func(ctx context.Context) error { _, err := s.Acquire(ctx, "x"); return err })
			rig.Is(t, held.Release(ctx))
			for _, err := range s.Resources(ctx) {
				rig.Is(t, err)
			}
			rig.Is(t, s.Forget(ctx, "x"))
		},
		"`jobs`": func(w *fixture.Fixture) {
			q := rig.Must(jobs.New[int](w.Client, rig.New(t).Table, jobs.Config{Retry: jobs.Retry{Attempts: 1}}))(t)
			rig.Is(t, q.EnsureTable(ctx))
			w.Count.Reset()
			rig.Must(q.Enqueue(ctx, "x", 1))(t)
			rig.Is(t, rig.Must(q.Next(ctx, "x"))(t).Fail(ctx, nil))
			for dead, err := range q.Dead(ctx, "x") {
				rig.Is(t, err)
				rig.Is(t, q.Requeue(ctx, "x", dead.ID))
			}
			rig.Is(t, rig.Must(q.Next(ctx, "x"))(t).Done(ctx))
			rig.Is(t, q.Forget(ctx, "x"))
		},
	} {
		t.Run(row, func(t *testing.T) {
			_, rest, ok := strings.Cut(document, "| "+row+" | ")
			allowed, _, _ := strings.Cut(rest, "\n")
			w := fixture.New(t)
			w.Count.Reset()
			calls(w)
			for op := range w.Count.Counts() {
				// A transaction is allowed by the rights for what it is made of.
				if !ok || op != "TransactWriteItems" && !strings.Contains(allowed, "`dynamodb:"+op+"`") {
					t.Errorf("%s sends %s, which docs/operations.md does not allow: %s", row, op, allowed)
				}
			}
		})
	}
}
