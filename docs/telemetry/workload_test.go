package telemetry_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

func TestMain(m *testing.M) { rig.Main(m) }

type product struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Stock   int    `dynamodbav:"stock"`
	Version int    `dynamodbav:"version" repo:"version"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
}

func take(_ context.Context, p *product) error { p.Stock--; return nil }

// shop is a program whose every part is told to the same providers.
type shop struct {
	*rig.Rig
	cfg repo.TableConfig
}

func newShop(t *testing.T, cfg repo.TableConfig) *shop {
	s := &shop{rig.New(t), cfg}
	rig.Is(t, s.table(t).EnsureTable(t.Context()))
	return s
}

func (s *shop) table(t *testing.T) *repo.Table[product] {
	return rig.Must(repo.NewTable[product](s.Client, s.Table, s.cfg))(t)
}

// put makes an item.
func (s *shop) put(t *testing.T, id string) repo.Key {
	rig.Must(rig.Must(nolock.New(s.table(t), nolock.Config{}))(t).Create(t.Context(), product{ID: id, Stock: 1000, At: 1}))(t)
	return repo.Key{Partition: id}
}

// until does something again and again until something has come of it that has no channel
// of its own.
func until(t *testing.T, happened func() bool, do func()) {
	t.Helper()
	for end := time.Now().Add(rig.Patience); !happened(); do() {
		if time.Now().After(end) {
			t.Fatalf("not within %v", rig.Patience)
		}
	}
}

// scenes are what befalls a shop, each for what only it provokes. happened tells whether
// a metric was recorded, for those that chance has a part in.
var scenes = map[string]func(t *testing.T, s *shop, happened func(metric string) bool){
	"hand over and combine": func(t *testing.T, s *shop, happened func(string) bool) {
		key := s.put(t, "apple")
		fair := []*pessimistic.Repository[product]{}
		for range 2 {
			fair = append(fair, rig.Must(pessimistic.New(s.table(t), pessimistic.Config{Fair: true}))(t))
		}
		combined := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{Combine: true}))(t)
		contend := func(r ...*pessimistic.Repository[product]) {
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					_, err := r[i%len(r)].Update(t.Context(), key, take)
					rig.Is(t, err)
				})
			}
			all.Wait()
		}
		until(t, func() bool { return happened("dynahold.lock.handed_on") && happened("dynahold.queue.depth") }, func() { contend(fair...) })
		until(t, func() bool { return happened("dynahold.batch.size") }, func() { contend(combined) })
	},
	"conflicts": func(t *testing.T, s *shop, happened func(string) bool) {
		key := s.put(t, "pear")
		one := rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t)
		other := rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t)
		first := true
		rig.Must(one.Update(t.Context(), key, func(ctx context.Context, p *product) error {
			if first {
				first = false
				rig.Must(other.Update(t.Context(), key, take))(t)
			}
			return take(ctx, p)
		}))(t)
	},
	"a dead holder": func(t *testing.T, s *shop, _ func(string) bool) {
		key, second := s.put(t, "plum"), s.put(t, "quince")
		dead := rig.Must(lockedread.New(s.table(t), lockedread.Config{Lease: time.Second, ClockSkew: -1}))(t)
		lost := rig.Must(dead.Acquire(t.Context(), key))(t)
		unused := rig.Must(dead.Acquire(t.Context(), second))(t)
		rig.Is(t, rig.Ended(lost.Context(), t), repo.ErrLockExpired)
		held := rig.Must(rig.Must(lockedread.New(s.table(t), lockedread.Config{ClockSkew: -1}))(t).Acquire(t.Context(), key))(t) // takes over
		rig.Is(t, held.Release(t.Context()))
		rig.Must(rig.Must(optimistic.New(s.table(t), optimistic.Config{ClockSkew: -1}))(t).Update(t.Context(), second, take))(t) // breaks
		_, err := lost.Commit(t.Context(), lost.Item())
		rig.Is(t, err, repo.ErrLockLost)
		rig.Is(t, unused.Release(t.Context()), repo.ErrLockLost)
	},
	"an operator": func(t *testing.T, s *shop, _ func(string) bool) {
		key := s.put(t, "cherry")
		r := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t)
		held := rig.Must(r.Acquire(t.Context(), key))(t)
		rig.Is(t, r.Locker().Break(t.Context(), key, held.Token()))
		_, err := held.Commit(t.Context(), held.Item())
		rig.Is(t, err, repo.ErrLockLost)
		rig.Is(t, rig.Ended(held.Context(), t), repo.ErrLockLost)
	},
	"a lost answer": func(t *testing.T, s *shop, _ func(string) bool) {
		key := s.put(t, "grape")
		r := rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t)
		item := rig.Must(r.Get(t.Context(), key))(t)
		s.Nth("DeleteItem", 0, fault.LoseResponse)
		rig.Is(t, r.Remove(t.Context(), item), repo.ErrOutcomeUnknown)
		s.Faults(nil)
	},
	"a network that fails": func(t *testing.T, s *shop, _ func(string) bool) {
		locks := s.rows(t)
		l := rig.Must(mutex.New(locks.Client, locks.Table, mutex.Config{Mode: mutex.FailOpen, Lease: time.Second, Heartbeat: 300 * time.Millisecond, Table: s.cfg}))(t)
		rig.Is(t, l.EnsureTable(t.Context()))
		lock := rig.Must(l.Lock(t.Context(), "nightly"))(t)
		locks.Always(fault.Error500)
		rig.Is(t, rig.Ended(lock.Context(), t), repo.ErrLockExpired)
		locks.Faults(nil)
		rig.Is(t, lock.Unlock(t.Context())) // nobody has taken it over
	},
	"a queue": func(t *testing.T, s *shop, _ func(string) bool) {
		rows := s.rows(t)
		q := rig.Must(ticket.New(rows.Client, rows.Table, ticket.Config{Table: s.cfg}))(t)
		rig.Is(t, q.EnsureTable(t.Context()))
		rig.Is(t, q.Do(t.Context(), "printer", func(context.Context, *ticket.Turn) error { return nil }))
		turn := rig.Must(q.Lock(t.Context(), "printer"))(t)
		rig.Is(t, q.Break(t.Context(), "printer", turn.Number()))
	},
	"jobs": func(t *testing.T, s *shop, happened func(string) bool) {
		rows := s.rows(t)
		texts := rig.Must(jobs.New[string](rows.Client, rows.Table, jobs.Config{Table: s.cfg, Limit: 1}))(t)
		numbers := rig.Must(jobs.New[int](rows.Client, rows.Table, jobs.Config{Table: s.cfg, NameResources: []string{"mail"}, Limit: 1, Poll: 50 * time.Millisecond, Retry: jobs.Retry{Attempts: 1}}))(t)
		rig.Is(t, texts.EnsureTable(t.Context()))
		rig.Must(texts.Enqueue(t.Context(), "mail", "no number"))(t)
		for i := range 3 {
			rig.Must(numbers.Enqueue(t.Context(), "mail", i))(t)
		}
		var ticked atomic.Bool
		numbers.Periodic("digest", jobs.Every(time.Second), func(time.Time) (string, int, error) {
			ticked.Store(true)
			return "", 0, errors.New("no digest")
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- numbers.Run(ctx, func(_ context.Context, j *jobs.Job[int]) error {
				if j.Value() == 1 {
					return errors.New("no such address")
				}
				return nil
			})
		}()
		rig.Await(t, "jobs are counted, and two are dead", func() bool {
			r, err := numbers.Resource(t.Context(), "mail")
			return err == nil && r.Dead == 2 && r.Queued == 0 && ticked.Load() && happened("dynahold.job.count") && happened("dynahold.batch.size")
		})
		cancel()
		rig.Is(t, <-ended)
		permits := rig.Must(semaphore.New(rows.Client, rows.Table, semaphore.Config{Table: s.cfg, Limit: 1}))(t)
		rig.Is(t, permits.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error { return nil }))
		permit := rig.Must(permits.Acquire(t.Context(), "scanner"))(t)
		rig.Is(t, permits.BreakPermit(t.Context(), "scanner", permit.ID()))
		id := rig.Must(texts.Enqueue(t.Context(), "scanner", "page"))(t)
		job := rig.Must(texts.Next(t.Context(), "scanner"))(t)
		rig.Is(t, texts.BreakJob(t.Context(), "scanner", id, job.Token()))
	},
	"transactions": func(t *testing.T, s *shop, _ func(string) bool) {
		one, two := s.put(t, "lemon"), s.put(t, "lime")
		locked := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t)
		rig.Is(t, txn.Config{MeterProvider: s.cfg.MeterProvider, TracerProvider: s.cfg.TracerProvider, Logger: s.cfg.Logger}.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for _, key := range []repo.Key{one, two} {
				if _, err := locked.In(tx).Update(ctx, key, take); err != nil {
					return err
				}
			}
			return nil
		}))
		versions := rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		s.Always(fault.LoseResponse)
		defer s.Faults(nil)
		rig.Is(t, txn.Config{MeterProvider: s.cfg.MeterProvider, TracerProvider: s.cfg.TracerProvider, Logger: s.cfg.Logger}.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			for _, key := range []repo.Key{one, two} {
				if err := versions.In(tx).Apply(ctx, key, expression.Add(expression.Name("stock"), expression.Value(1))); err != nil {
					return err
				}
			}
			return nil
		}), repo.ErrOutcomeUnknown)
	},
	"mail": func(t *testing.T, s *shop, _ func(string) bool) {
		rows := s.rows(t)
		items, all, add := commands(t, rows.Client, rows.Table, s.cfg)
		rig.Is(t, items.Table().EnsureTable(t.Context()))
		rig.Must(items.Create(t.Context(), basket{Shop: "s", ID: "apple"}))(t)
		rig.Must(add.Do(t.Context(), apples, 1))(t)
		rig.Is(t, all.Close(t.Context()))
	},
	"once": func(t *testing.T, s *shop, _ func(string) bool) {
		rows := s.rows(t)
		payments := rig.Must(once.New(rows.Client, rows.Table, once.Config{Table: s.cfg}))(t)
		rig.Is(t, payments.EnsureTable(t.Context()))
		rig.Must(once.Do(t.Context(), payments, "m1", func(context.Context, once.Run) (int, error) { return 1, nil }))(t)
	},
}

// rows is another table, of locks, queues or jobs.
func (s *shop) rows(t *testing.T) *rig.Rig { return rig.New(t) }

// open lets everything befall a shop.
func open(t *testing.T, cfg repo.TableConfig, happened func(metric string) bool) {
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) { scene(t, newShop(t, cfg), happened) })
	}
}
