package txn_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

func TestMain(m *testing.M) { rig.MainOr(m, child) }

// The items of the strategies. All of them count, with and without a version.
type counted struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	Version int64  `dynamodbav:"version" repo:"version"`

	Log []string `dynamodbav:"log,omitempty"`
}

type plain struct {
	ID  string   `dynamodbav:"id" repo:"pk"`
	N   int      `dynamodbav:"n"`
	Log []string `dynamodbav:"log,omitempty"`
}

type event struct {
	ID  string   `dynamodbav:"id" repo:"pk"`
	N   int      `dynamodbav:"n"`
	At  int64    `dynamodbav:"at" repo:"eventtime"`
	Log []string `dynamodbav:"log,omitempty"`
}

// store is a repository, whatever its items are.
type store interface {
	in(tx *txn.Tx) store
	keys(ids ...string) txn.Keys
	get(ctx context.Context, id string) (int, error)
	create(ctx context.Context, id string, n int) error
	add(ctx context.Context, id string, n int) error
	upsert(ctx context.Context, id string, n int) error
	remove(ctx context.Context, id string) error
	log(ctx context.Context, id string) ([]string, error)
	write(ctx context.Context, id, entry string) error // to the log
}

type of[T any] struct {
	repo.Repository[T]
	make func(id string, n int) T
	n    func(*T) *int
	list func(*T) *[]string
	view func(*txn.Tx) repo.Repository[T]
	key  func(...repo.Key) txn.Keys
}

func key(id string) repo.Key { return repo.Key{Partition: id} }

func (s of[T]) in(tx *txn.Tx) store { s.Repository = s.view(tx); return s }

func (s of[T]) keys(ids ...string) txn.Keys {
	var keys []repo.Key
	for _, id := range ids {
		keys = append(keys, key(id))
	}
	return s.key(keys...)
}

func (s of[T]) get(ctx context.Context, id string) (int, error) {
	item, err := s.Get(ctx, key(id))
	return *s.n(&item), err
}

func (s of[T]) create(ctx context.Context, id string, n int) error {
	_, err := s.Create(ctx, s.make(id, n))
	return err
}

func (s of[T]) change(n int) func(context.Context, *T) error {
	return func(_ context.Context, item *T) error { *s.n(item) += n; return nil }
}

func (s of[T]) add(ctx context.Context, id string, n int) error {
	_, err := s.Update(ctx, key(id), s.change(n))
	return err
}

func (s of[T]) upsert(ctx context.Context, id string, n int) error {
	_, err := s.Upsert(ctx, key(id), s.change(n))
	return err
}

func (s of[T]) remove(ctx context.Context, id string) error { return s.Delete(ctx, key(id)) }

func (s of[T]) log(ctx context.Context, id string) ([]string, error) {
	item, err := s.Get(ctx, key(id))
	return *s.list(&item), err
}

func (s of[T]) write(ctx context.Context, id, entry string) error {
	_, err := s.Update(ctx, key(id), func(_ context.Context, item *T) error {
		*s.list(item) = append(*s.list(item), entry)
		return nil
	})
	return err
}

// kinds are the strategies of the tests.
var kinds = []string{"optimistic", "optimistic, fair", "nolock", "pessimistic", "pessimistic, versions", "fair"}

// world is a set of tables, one for each kind.
type world struct {
	*rig.Rig
	suffix string
	stores map[string]store
}

func table[T any](t testing.TB, r *rig.Rig, name string, ensure bool) *repo.Table[T] {
	t.Helper()
	tab := rig.Must(repo.NewTable[T](r.Client, r.Table+name, repo.TableConfig{}))(t)
	if ensure {
		rig.Is(t, tab.EnsureTable(t.Context()))
	}
	return tab
}

// No machine is so slow that a lock ends with its lease in the middle of a test,
// but for those of processes that are killed.
const (
	lease      = time.Minute
	shortLease = 3 * time.Second
)

// tables are made once: tests use items of their own.
var tables struct {
	sync.Once
	*rig.Rig
}

// newWorld is a client of its own for the tables.
func newWorld(t testing.TB) *world {
	t.Helper()
	tables.Do(func() {
		tables.Rig = rig.New(t)
		openWorld(t, tables.Rig, true)
	})
	return openWorld(t, tables.Peer(), false)
}

// id is a name that no other test has.
func (w *world) id(name string) string { return w.suffix + name }

func openWorld(t testing.TB, r *rig.Rig, ensure bool) *world {
	t.Helper()
	return openLeased(t, r, ensure, lease)
}

func openLeased(t testing.TB, r *rig.Rig, ensure bool, lease time.Duration) *world {
	t.Helper()
	w := &world{Rig: r, suffix: rand.Text()[:6] + " ", stores: map[string]store{}}
	countedStore := func(r repo.Repository[counted], view func(*txn.Tx) repo.Repository[counted], keys func(...repo.Key) txn.Keys) store {
		return of[counted]{r, func(id string, n int) counted { return counted{ID: id, N: n} }, func(c *counted) *int { return &c.N }, func(c *counted) *[]string { return &c.Log }, view, keys}
	}
	o := rig.Must(optimistic.New(table[counted](t, r, "-o", ensure), optimistic.Config{}))(t)
	w.stores["optimistic"] = countedStore(o, func(tx *txn.Tx) repo.Repository[counted] { return o.In(tx) }, o.Keys)
	of := rig.Must(optimistic.New(table[counted](t, r, "-of", ensure), optimistic.Config{Fair: true}))(t)
	w.stores["optimistic, fair"] = countedStore(of, func(tx *txn.Tx) repo.Repository[counted] { return of.In(tx) }, of.Keys)
	v := rig.Must(pessimistic.New(table[counted](t, r, "-v", ensure), pessimistic.Config{Lease: lease, Race: true}))(t)
	w.stores["pessimistic, versions"] = countedStore(v, func(tx *txn.Tx) repo.Repository[counted] { return v.In(tx) }, v.Keys)
	p := rig.Must(pessimistic.New(table[plain](t, r, "-p", ensure), pessimistic.Config{Lease: lease, Race: true}))(t)
	w.stores["pessimistic"] = plainStore(p)
	f := rig.Must(pessimistic.New(table[plain](t, r, "-f", ensure), pessimistic.Config{Lease: lease}))(t)
	w.stores["fair"] = plainStore(f)
	n := rig.Must(nolock.New(table[event](t, r, "-n", ensure), nolock.Config{}))(t)
	w.stores["nolock"] = eventStore(n)
	return w
}

func plainStore(p *pessimistic.Repository[plain]) store {
	return of[plain]{p, func(id string, n int) plain { return plain{ID: id, N: n} }, func(c *plain) *int { return &c.N }, func(c *plain) *[]string { return &c.Log },
		func(tx *txn.Tx) repo.Repository[plain] { return p.In(tx) }, p.Keys}
}

func eventStore(n *nolock.Repository[event]) store {
	return of[event]{n, func(id string, n int) event { return event{ID: id, N: n, At: 1} }, func(c *event) *int { return &c.N }, func(c *event) *[]string { return &c.Log },
		func(tx *txn.Tx) repo.Repository[event] { return n.In(tx) }, n.Keys}
}
