package copies_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// The items of transactions: N is what the transaction changes, Others what others do.
type thing struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	Others  int    `dynamodbav:"others"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

type happening struct {
	ID     string `dynamodbav:"id" repo:"pk"`
	N      int    `dynamodbav:"n"`
	Others int    `dynamodbav:"others"`
	At     int64  `dynamodbav:"at" repo:"eventtime"`
}

// shop is the repositories of one process.
type shop struct {
	o *optimistic.Repository[thing]
	p *pessimistic.Repository[thing]
	n *nolock.Repository[happening]
}

var shopTables struct {
	sync.Once
	*rig.Rig
}

func openShop(t *testing.T) (mine *shop, net *fault.Copier, peer *shop) {
	t.Helper()
	shopTables.Do(func() { shopTables.Rig = rig.New(t) })
	client, net := rig.Copied()
	peer = shopOf(t, shopTables.Client)
	return shopIn(t, client), net, peer
}

// shopIn is a shop on tables that are there.
func shopIn(t *testing.T, client repo.Client) *shop {
	t.Helper()
	return &shop{
		o: rig.Must(optimistic.New(rig.Must(repo.NewTable[thing](client, shopTables.Table+"-o", repo.TableConfig{}))(t), optimistic.Config{}))(t),
		p: rig.Must(pessimistic.New(rig.Must(repo.NewTable[thing](client, shopTables.Table+"-p", repo.TableConfig{}))(t), pessimistic.Config{}))(t),
		n: rig.Must(nolock.New(rig.Must(repo.NewTable[happening](client, shopTables.Table+"-n", repo.TableConfig{}))(t), nolock.Config{}))(t),
	}
}

// shopOf makes its tables, too.
func shopOf(t *testing.T, client repo.Client) *shop {
	t.Helper()
	return &shop{
		o: rig.Must(optimistic.New(thingsOf[thing](t, client, "-o"), optimistic.Config{}))(t),
		p: rig.Must(pessimistic.New(thingsOf[thing](t, client, "-p"), pessimistic.Config{}))(t),
		n: rig.Must(nolock.New(thingsOf[happening](t, client, "-n"), nolock.Config{}))(t),
	}
}

func thingsOf[T any](t *testing.T, client repo.Client, suffix string) *repo.Table[T] {
	t.Helper()
	table := rig.Must(repo.NewTable[T](client, shopTables.Table+suffix, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	return table
}

// txnOp is what a transaction does to one item.
type txnOp struct {
	name  string
	there bool // the item is there before
	held  bool // under its lock
	// do is the operation; item is what was read of it before, outside.
	do func(ctx context.Context, s *shop, tx *txn.Tx, id string) error
	// done is how often it was done, by what is there; others writes n times.
	done   func(ctx context.Context, s *shop, id string) int
	make   func(ctx context.Context, s *shop, id string) error
	others func(ctx context.Context, s *shop, id string) error
	// blind: bound to nothing that was read. gone: what it leaves is no item.
	blind, gone, makes bool
}

const (
	start   = 10
	missing = -1
)

func thingKey(id string) repo.Key { return repo.Key{Partition: id} }

func more(_ context.Context, v *thing) error        { v.N++; return nil }
func moreOf(_ context.Context, v *happening) error  { v.N++; return nil }
func other(_ context.Context, v *thing) error       { v.Others++; return nil }
func otherOf(_ context.Context, v *happening) error { v.Others++; return nil }

func count() expression.UpdateBuilder {
	return expression.Set(expression.Name("n"), expression.Name("n").Plus(expression.Value(1)))
}

// read is what somebody has read of an item, of a process that has not.
func read(ctx context.Context, s *shop, id string) thing {
	item, _ := s.o.Get(ctx, thingKey(id))
	return item
}

func txnOps() map[string]txnOp {
	counted := func(ctx context.Context, s *shop, id string) int {
		item, err := s.o.Get(ctx, thingKey(id))
		if err != nil {
			return missing
		}
		return item.N - start
	}
	made := func(ctx context.Context, s *shop, id string) int {
		if _, err := s.o.Get(ctx, thingKey(id)); err != nil {
			return 0
		}
		return 1
	}
	gone := func(ctx context.Context, s *shop, id string) int { return 1 - made(ctx, s, id) }
	create := func(ctx context.Context, s *shop, id string) error {
		_, err := s.o.Create(ctx, thing{ID: id, N: start})
		return err
	}
	others := func(ctx context.Context, s *shop, id string) error {
		_, err := s.o.Update(ctx, thingKey(id), other)
		return err
	}
	o := txnOp{there: true, done: counted, make: create, others: others}
	with := func(name string, base txnOp, do func(ctx context.Context, s *shop, tx *txn.Tx, id string) error) txnOp {
		base.name, base.do = name, do
		return base
	}
	all := []txnOp{
		with("Update", o, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			_, err := s.o.In(tx).Update(ctx, thingKey(id), more)
			return err
		}),
		with("Get", txnOp{there: true, make: create, others: others}, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			_, err := s.o.In(tx).Get(ctx, thingKey(id))
			return err
		}),
		with("Delete", txnOp{there: true, done: gone, make: create, others: others, gone: true}, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			return s.o.In(tx).Delete(ctx, thingKey(id))
		}),
		with("Create", txnOp{done: made, make: create, others: others, makes: true}, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			_, err := s.o.In(tx).Create(ctx, thing{ID: id, N: start + 1})
			return err
		}),
		with("Apply", txnOp{there: true, done: counted, make: create, others: others, blind: true}, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			return s.o.In(tx).Apply(ctx, thingKey(id), count())
		}),
		with("nolock Update", txnOp{there: true, done: func(ctx context.Context, s *shop, id string) int {
			item, err := s.n.Get(ctx, thingKey(id))
			if err != nil {
				return missing
			}
			return item.N - start
		}, make: func(ctx context.Context, s *shop, id string) error {
			_, err := s.n.Create(ctx, happening{ID: id, N: start, At: 1})
			return err
		}, others: func(ctx context.Context, s *shop, id string) error {
			_, err := s.n.Update(ctx, thingKey(id), otherOf)
			return err
		}}, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			_, err := s.n.In(tx).Update(ctx, thingKey(id), moreOf)
			return err
		}),
		with("locked Update", txnOp{there: true, held: true, done: func(ctx context.Context, s *shop, id string) int {
			item, err := s.p.Get(ctx, thingKey(id))
			if err != nil {
				return missing
			}
			return item.N - start
		}, make: func(ctx context.Context, s *shop, id string) error {
			_, err := s.p.Create(ctx, thing{ID: id, N: start})
			return err
		}, others: func(ctx context.Context, s *shop, id string) error {
			_, err := s.p.Update(ctx, thingKey(id), other)
			return err
		}}, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
			_, err := s.p.In(tx).Update(ctx, thingKey(id), more)
			return err
		}),
	}
	byName := map[string]txnOp{}
	for _, one := range all {
		byName[one.name] = one
	}
	return byName
}

// call is a transaction of some operations, each on an item of its own.
type transaction struct {
	name  string
	ops   []txnOp
	saves bool // the first item is saved, or removed, as it was read outside
	once  bool
}

func transactions() (all []transaction) {
	by := txnOps()
	for _, names := range [][]string{
		{"Update"}, {"nolock Update"}, {"Create"}, {"Delete"}, {"Apply"}, {"locked Update"},
		{"Update", "Update"}, {"Update", "nolock Update"}, {"nolock Update", "Get"}, {"locked Update", "Update"}, {"locked Update", "locked Update", "Update"},
		{"Create", "Update"}, {"Create", "Create"}, {"Delete", "Update"}, {"Apply", "Apply"}, {"Apply", "Update"}, {"Apply", "locked Update", "Create"}, {"Create", "Apply"},
	} {
		c := transaction{}
		for _, name := range names {
			c.ops = append(c.ops, by[name])
			c.name += name + ", "
		}
		c.name = c.name[:len(c.name)-2]
		all = append(all, c)
	}
	for _, names := range [][]string{{"Update", "Update"}, {"Apply", "Apply"}, {"Create", "locked Update"}} {
		c := transaction{once: true, name: "Once: "}
		for _, name := range names {
			c.ops = append(c.ops, by[name])
			c.name += name + " "
		}
		all = append(all, c)
	}
	save, remove := by["Update"], by["Delete"]
	save.name, save.do = "Save", func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		item := given(ctx)
		item.N++
		_, err := s.o.In(tx).Save(ctx, item)
		return err
	}
	remove.name, remove.do = "Remove", func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		return s.o.In(tx).Remove(ctx, given(ctx))
	}
	return append(all, transaction{name: "Save", ops: []txnOp{save}, saves: true}, transaction{name: "Save, Update", ops: []txnOp{save, by["Update"]}, saves: true},
		transaction{name: "Remove, Update", ops: []txnOp{remove, by["Update"]}, saves: true})
}

// unbound says that nothing of the call is bound to what was read: it is Apply without an
// id, or the making of items, that of which docs/limits.md says what a late copy does.
func (c transaction) unbound() bool {
	return !c.once && !slices.ContainsFunc(c.ops, func(o txnOp) bool { return !o.blind && !o.makes })
}

func (c transaction) has(is func(txnOp) bool) bool { return slices.ContainsFunc(c.ops, is) }

// vague says that the call is a single write, of which others may cover all traces, or of
// which none are left.
func (c transaction) vague() bool { return len(c.ops) == 1 }

type givenKey struct{}

// given is what was read outside, of the first item.
func given(ctx context.Context) thing {
	item, _ := ctx.Value(givenKey{}).(thing)
	return item
}

// txnCell is one call at one moment.
type txnCell struct {
	transaction
	t          *testing.T
	mine, peer *shop
	net        *fault.Copier
	ids        []string
	cfg        txn.Config
}

func newCell(t *testing.T, c transaction) *txnCell {
	mine, net, peer := openShop(t)
	w := &txnCell{transaction: c, t: t, mine: mine, peer: peer, net: net}
	for _, o := range c.ops {
		id := rand.Text()
		w.ids = append(w.ids, id)
		if o.there {
			rig.Is(t, o.make(t.Context(), peer, id))
		}
	}
	return w
}

// run runs the transaction.
func (w *txnCell) run(ctx context.Context) error {
	if w.saves {
		ctx = context.WithValue(ctx, givenKey{}, read(ctx, w.peer, w.ids[0]))
	}
	run := func(ctx context.Context, tx *txn.Tx) error {
		for i, o := range w.ops {
			if err := o.do(ctx, w.mine, tx, w.ids[i]); err != nil {
				return err
			}
		}
		if inside, some := ctx.Value(insideKey{}).(func()); some {
			inside()
		}
		return nil
	}
	if w.once {
		return w.cfg.Once("order "+w.ids[0]).Run(ctx, run)
	}
	return w.cfg.Run(ctx, run)
}

// others write to all items that are there, and that the transaction does not hold.
func (w *txnCell) others(n int) {
	for i, o := range w.ops {
		for range n {
			if o.held {
				break
			}
			if err := o.others(w.t.Context(), w.peer, w.ids[i]); err != nil && !errors.Is(err, repo.ErrNotFound) {
				w.t.Error(err)
			}
		}
	}
}

// commits accepts the request that commits: all writes but those that take locks.
func (w *txnCell) commits() func(*fault.Copy) bool {
	locks := 0
	if len(w.ops) == 1 && w.ops[0].held {
		locks = 1
	}
	var mu sync.Mutex
	return func(one *fault.Copy) bool {
		if len(w.ops) > 1 {
			return one.Op == "TransactWriteItems"
		}
		mu.Lock()
		defer mu.Unlock()
		if fault.Writes(one) {
			locks--
			return locks < 0
		}
		return false
	}
}

// applied is how often the transaction was applied, by its items; they agree.
func (w *txnCell) applied() int {
	times, first := 0, true
	for i, o := range w.ops {
		if o.done == nil {
			continue
		}
		n := o.done(w.t.Context(), w.peer, w.ids[i])
		if n == missing {
			continue // others have deleted it
		}
		if !first && n != times && !o.makes && !o.gone {
			if w.has(func(o txnOp) bool { return o.makes || o.gone }) && times <= 1 {
				times = n
				continue
			}
			w.t.Errorf("%s: applied %d times here, %d there", w.name, times, n)
		}
		if first || n > times {
			times, first = n, false
		}
	}
	return times
}
