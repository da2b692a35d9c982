package txn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// holds are the tables of what can be held beside items, as one process has them.
type holds struct {
	closed, open *mutex.Locker
	queue        *ticket.Queue
	permits      *semaphore.Semaphore
	work         *jobs.Queue[int]
	ids          *once.Store
}

var holdTables sync.Once

// holds opens the tables, by a clock; nil is the machine's. Leases are longer than any
// test takes: to others they are over if their clock is ahead.
func (w *world) holds(t testing.TB, clock func() time.Time) holds {
	t.Helper()
	const lease = time.Minute
	table := repo.TableConfig{Clock: clock}
	h := holds{
		closed:  rig.Must(mutex.New(w.Client, w.Table+"-m", mutex.Config{Table: table}))(t),
		open:    rig.Must(mutex.New(w.Client, w.Table+"-m", mutex.Config{Mode: mutex.FailOpen, Lease: lease, Table: table}))(t),
		queue:   rig.Must(ticket.New(w.Client, w.Table+"-t", ticket.Config{Lease: lease, ClockSkew: -1, Table: table}))(t),
		permits: rig.Must(semaphore.New(w.Client, w.Table+"-s", semaphore.Config{Lease: lease, ClockSkew: -1, Table: table}))(t),
		work:    rig.Must(jobs.New[int](w.Client, w.Table+"-s", jobs.Config{Lease: lease, ClockSkew: -1, Retry: jobs.Retry{Min: time.Millisecond, Max: time.Millisecond}, Table: table}))(t),
		ids:     rig.Must(once.New(w.Client, w.Table+"-o", once.Config{Lease: lease, ClockSkew: -1, Wait: repo.Wait{Max: 20 * time.Millisecond}, Table: table}))(t),
	}
	holdTables.Do(func() {
		rig.Is(t, h.closed.EnsureTable(t.Context()))
		rig.Is(t, h.queue.EnsureTable(t.Context()))
		rig.Is(t, h.work.EnsureTable(t.Context()))
		rig.Is(t, h.ids.EnsureTable(t.Context()))
	})
	return h
}

// ahead is a clock by which all leases of a test are over.
func ahead() time.Time { return time.Now().Add(time.Hour) }

// holding is something held: how others take it over, and how its holder ends it.
type holding struct {
	txn.Held
	row      repo.Key
	table    string
	takeOver func()
	end      func(context.Context) error
}

// kindsOfHold take each kind of hold. The clock of the others is ahead.
var kindsOfHold = []struct {
	name string
	take func(t *testing.T, w *world, mine, others holds) holding
}{
	{"a fail-closed lock", func(t *testing.T, w *world, mine, others holds) holding {
		return lockOf(t, w, mine.closed, others.closed)
	}},
	{"a fail-open lock", func(t *testing.T, w *world, mine, others holds) holding {
		return lockOf(t, w, mine.open, others.open)
	}},
	{"a group of locks", func(t *testing.T, w *world, mine, others holds) holding {
		g := rig.Must(mine.closed.LockAll(t.Context(), w.id("l1"), w.id("l2")))(t)
		second := g.Locks()[1]
		return holding{Held: g, row: second.Key(), table: w.Table + "-m", end: g.Unlock, takeOver: func() {
			rig.Is(t, others.closed.Break(t.Context(), second.Key(), second.Token()))
		}}
	}},
	{"a turn", func(t *testing.T, w *world, mine, others holds) holding {
		turn := rig.Must(mine.queue.Lock(t.Context(), w.id("q")))(t)
		return holding{Held: turn, row: key("/" + w.id("q")), table: w.Table + "-t", end: turn.Done, takeOver: func() {
			rig.Must(others.queue.Lock(t.Context(), w.id("q")))(t)
		}}
	}},
	{"a permit", func(t *testing.T, w *world, mine, others holds) holding {
		p := rig.Must(mine.permits.Acquire(t.Context(), w.id("p")))(t)
		return holding{Held: p, row: w.resource(t, w.id("p")), table: w.Table + "-s", end: p.Release, takeOver: func() {
			rig.Must(others.permits.Acquire(t.Context(), w.id("p")))(t)
		}}
	}},
	{"a job", func(t *testing.T, w *world, mine, others holds) holding {
		rig.Must(mine.work.Enqueue(t.Context(), w.id("j"), 1))(t)
		job := rig.Must(mine.work.Next(t.Context(), w.id("j")))(t)
		return holding{Held: job, row: repo.Key{Partition: "JOBS#" + w.id("j"), Sort: job.ID()}, table: w.Table + "-s", end: job.Done, takeOver: func() {
			rig.Await(t, "the job is taken over", func() bool { _, err := others.work.Next(t.Context(), w.id("j")); return err == nil })
		}}
	}},
	{"a run of an id", func(t *testing.T, w *world, mine, others holds) holding {
		id := w.id("o")
		run, finish, finished := make(chan running), make(chan struct{}), make(chan error)
		go func() {
			_, err := once.Do(t.Context(), mine.ids, id, func(ctx context.Context, r once.Run) (int, error) {
				run <- running{r, ctx}
				<-finish
				return 1, nil
			})
			finished <- err
		}()
		return holding{Held: <-run, row: key(id), table: w.Table + "-o",
			end: func(context.Context) error {
				close(finish)
				return <-finished
			},
			takeOver: func() {
				rig.Must(once.Do(t.Context(), others.ids, id, func(context.Context, once.Run) (int, error) { return 2, nil }))(t)
			}}
	}},
}

// running is a run of an id with its context.
type running struct {
	once.Run
	ctx context.Context
}

func (r running) Context() context.Context { return r.ctx }

func lockOf(t *testing.T, w *world, mine, others *mutex.Locker) holding {
	lock := rig.Must(mine.Lock(t.Context(), w.id("l")))(t)
	return holding{Held: lock, row: lock.Key(), table: w.Table + "-m", end: lock.Unlock, takeOver: func() {
		rig.Is(t, others.Break(t.Context(), lock.Key(), lock.Token()))
		rig.Must(others.TryLock(t.Context(), lock.Key()))(t)
	}}
}

// resource is the key of a resource's row.
func (w *world) resource(t *testing.T, name string) repo.Key {
	t.Helper()
	table := w.Table + "-s"
	out, err := w.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	rig.Is(t, err)
	for _, row := range out.Items {
		if sk := row["sk"].(*types.AttributeValueMemberS).Value; sk == name {
			return repo.Key{Partition: row["pk"].(*types.AttributeValueMemberS).Value, Sort: sk}
		}
	}
	t.Fatalf("no resource %q", name)
	return repo.Key{}
}

// What is required and still held does not stand in the way; what others have taken
// over in the middle of the transaction does, whatever it writes, and its handle
// learns of it.
func TestRequire(t *testing.T) {
	for _, kind := range kindsOfHold {
		for _, store := range []string{"optimistic", "pessimistic", "only reads"} {
			t.Run(kind.name+", "+store, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				mine, others := w.holds(t, nil), openPeer(t, w).holds(t, ahead)
				reads := store == "only reads"
				if reads {
					store = "optimistic"
				}
				s, x := w.stores[store], w.id("x")
				rig.Is(t, s.create(t.Context(), x, 10))
				held := kind.take(t, w, mine, others)
				runs := 0
				run := func(meanwhile func()) error {
					return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
						runs++
						if err := tx.Require(held, held); err != nil {
							return err
						}
						meanwhile()
						if reads {
							_, err := s.in(tx).get(ctx, x)
							return err
						}
						return s.in(tx).add(ctx, x, 1)
					})
				}
				rig.Is(t, run(func() {}))
				want := 11
				if reads {
					want = 10
				}
				has(t, s, x, want)
				runs = 0
				err := run(held.takeOver)
				rig.Is(t, err, repo.ErrLockLost)
				var failed *txn.Error
				if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].Table != held.table || failed.Failed[0].Key != held.row {
					t.Errorf("failed: %+v", failed)
				}
				if text := fmt.Sprint(err); strings.Count(text, "nothing was written")+strings.Count(text, "wrote nothing") != 1 {
					t.Errorf("it does not say once that nothing was written: %v", err)
				}
				rig.Equal(t, runs, 1, "runs")
				has(t, s, x, want)
				_ = rig.Ended(held.Held.(interface{ Context() context.Context }).Context(), t)
				rig.Is(t, held.end(t.Context()), repo.ErrLockLost)
				rig.Is(t, s.add(t.Context(), x, 1)) // nobody holds it
			})
		}
	}
}

// A lease that runs out while nobody takes over is not missed; that it has run out
// before is.
func TestRequireOfWhatHasExpired(t *testing.T) {
	w := newWorld(t)
	var clock repotest.Clock
	h := w.holds(t, clock.Now)
	s, x := w.stores["optimistic"], w.id("x")
	rig.Is(t, s.create(t.Context(), x, 10))
	permit := rig.Must(h.permits.Acquire(t.Context(), w.id("p")))(t)
	run := func(meanwhile func()) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			err := tx.Require(permit)
			meanwhile()
			return errors.Join(err, s.in(tx).upsert(ctx, x, 1), s.in(tx).upsert(ctx, w.id("new"), 1))
		})
	}
	rig.Is(t, run(func() {
		clock.Advance(time.Hour)
		_ = rig.Ended(permit.Context(), t)
	}))
	has(t, s, x, 11)
	rig.Is(t, run(func() {}), repo.ErrLockExpired)
	has(t, s, x, 11)
}

// What has ended is refused at once, by its own error, also if the closure does not
// look at it.
func TestRequireOfWhatHasEnded(t *testing.T) {
	for _, kind := range kindsOfHold {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.holds(t, nil)
			s, x := w.stores["optimistic"], w.id("x")
			held := kind.take(t, w, h, h)
			rig.Is(t, held.end(t.Context()))
			w.Count.Reset()
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				rig.Is(t, tx.Require(held), repo.ErrReleased)
				_ = s.in(tx).create(ctx, x, 1)
				return nil
			}), repo.ErrReleased)
			rig.Equal(t, w.Count.Total(), 0, "%v", w.Count.Counts())
		})
	}
}

// What is released after it was required has no longer been held.
func TestRequireOfWhatEndsMeanwhile(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x := w.stores["optimistic"], w.id("x")
	lock := rig.Must(h.closed.Lock(t.Context(), w.id("l")))(t)
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		rig.Is(t, tx.Require(lock))
		rig.Is(t, lock.Unlock(ctx))
		return s.in(tx).create(ctx, x, 1)
	})
	rig.Is(t, err, repo.ErrReleased)
	has(t, s, x, -1)
}

// Two permits of a resource are one row of the commit.
func TestRequireTwoOnOneRow(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x := w.stores["optimistic"], w.id("x")
	rig.Is(t, h.permits.SetLimit(t.Context(), w.id("p"), 2))
	one, other := rig.Must(h.permits.Acquire(t.Context(), w.id("p")))(t), rig.Must(h.permits.Acquire(t.Context(), w.id("p")))(t)
	w.Count.Reset()
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		return errors.Join(tx.Require(one, other), s.in(tx).create(ctx, x, 1))
	}))
	rig.Equal(t, w.Count.Total(), 1, "%v", w.Count.Counts())
	has(t, s, x, 1)
}

// Misuse has a word of what is wrong.
// foreign are keys of no repository.
type foreign struct{}

func (foreign) Table() string { return "orders" }

func TestRequireBadInput(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x := w.stores["optimistic"], w.id("x")
	lock := rig.Must(h.closed.Lock(t.Context(), w.id("l")))(t)
	peer := rig.Must(openPeer(t, w).holds(t, nil).closed.Lock(t.Context(), w.id("l2")))(t)
	var kept *txn.Tx
	rig.Is(t, txn.Run(t.Context(), func(_ context.Context, tx *txn.Tx) error { kept = tx; return nil }))
	for name, c := range map[string]struct {
		run  func(tx *txn.Tx) error
		text string
	}{
		"nothing":                {func(tx *txn.Tx) error { return tx.Require(nil) }, "nil"},
		"no lock":                {func(tx *txn.Tx) error { return tx.Require((*mutex.Lock)(nil)) }, "nil"},
		"no locks":               {func(tx *txn.Tx) error { return tx.Require((*mutex.Group)(nil)) }, "nil"},
		"no turn":                {func(tx *txn.Tx) error { return tx.Require((*ticket.Turn)(nil)) }, "nil"},
		"no permit":              {func(tx *txn.Tx) error { return tx.Require((*semaphore.Permit)(nil)) }, "nil"},
		"no keys":                {func(tx *txn.Tx) error { return tx.Prefetch(t.Context(), nil) }, "keys 1"},
		"a lock of nobody":       {func(tx *txn.Tx) error { return tx.Require(&mutex.Lock{}) }, "not from its package"},
		"locks of nobody":        {func(tx *txn.Tx) error { return tx.Require(&mutex.Group{}) }, "not from its package"},
		"a job of nobody":        {func(tx *txn.Tx) error { return tx.Require(&jobs.Job[int]{}) }, "not from its package"},
		"a turn of nobody":       {func(tx *txn.Tx) error { return tx.Require(&ticket.Turn{}) }, "not from its package"},
		"a permit of nobody":     {func(tx *txn.Tx) error { return tx.Require(&semaphore.Permit{}) }, "not from its package"},
		"keys of somebody else":  {func(tx *txn.Tx) error { return tx.Prefetch(t.Context(), foreign{}) }, "keys 1"},
		"another client":         {func(tx *txn.Tx) error { return tx.Require(peer) }, "another client"},
		"the transaction before": {func(*txn.Tx) error { return kept.Require(lock) }, "over"},
		"a run made by hand":     {func(tx *txn.Tx) error { return tx.Require(once.Run{ID: "order-7"}) }, `the run of "order-7" is not from Do`},
		"no transaction":         {func(*txn.Tx) error { return lock.RequireIn(nil) }, "nil"},
		"a nil transaction":      {func(*txn.Tx) error { return lock.RequireIn((*txn.Tx)(nil)) }, "nil"},
		"none that was begun":    {func(*txn.Tx) error { return lock.RequireIn(&txn.Tx{}) }, "nil"},
		"one of the caller's":    {func(tx *txn.Tx) error { return lock.RequireIn(struct{ *txn.Tx }{tx}) }, "not from txn.Run"},
	} {
		t.Run(name, func(t *testing.T) {
			err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if err := c.run(tx); err != nil {
					return err
				}
				return s.in(tx).create(ctx, x, 1)
			})
			rig.Is(t, err, repo.ErrConfig)
			if !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error %v does not say %q", err, c.text)
			}
			has(t, s, x, -1)
		})
	}
}

// What cannot be required fails the transaction, also where its closure does not look at the
// error.
func TestRequireThatIsRefusedFailsTheTransaction(t *testing.T) {
	w := newWorld(t)
	s, x := w.stores["optimistic"], w.id("x")
	for name, held := range map[string]txn.Held{
		"nothing": nil, "no lock": (*mutex.Lock)(nil), "a lock of nobody": &mutex.Lock{}, "locks of nobody": &mutex.Group{}, "a run made by hand": once.Run{},
	} {
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			_ = tx.Require(held)
			return s.in(tx).create(ctx, x, 1)
		}), repo.ErrConfig)
		if has(t, s, x, -1); t.Failed() {
			t.Fatal(name)
		}
	}
}
