package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/suite"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// invoice and receipt share a table.
type invoice struct {
	ID      string    `dynamodbav:"id" repo:"pk"`
	N       int       `dynamodbav:"seq" repo:"sk"`
	Kind    string    `dynamodbav:"kind" repo:"type=invoice"`
	Total   int64     `dynamodbav:"total"`
	At      int64     `dynamodbav:"at" repo:"eventtime"`
	Version int64     `dynamodbav:"version" repo:"version"`
	Made    time.Time `dynamodbav:"made" repo:"created"`
	Changed int64     `dynamodbav:"changed" repo:"updated,unit=ns"`
}

type receipt struct {
	ID      string    `dynamodbav:"id" repo:"pk"`
	N       int       `dynamodbav:"seq" repo:"sk"`
	Kind    string    `dynamodbav:"kind" repo:"type=receipt"`
	Paid    int64     `dynamodbav:"paid"`
	At      int64     `dynamodbav:"at" repo:"eventtime"`
	Version int64     `dynamodbav:"version" repo:"version"`
	Made    time.Time `dynamodbav:"made,unixtime" repo:"created"`
	Changed uint64    `dynamodbav:"changed" repo:"updated"`
}

// shared is a table for both.
func shared(t *testing.T) (*suite.Fixture, *repo.Table[invoice], *repo.Table[receipt]) {
	f := suite.Empty(t)
	invoices := rig.Must(repo.NewTable[invoice](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	receipts := rig.Must(repo.NewTable[receipt](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	rig.Is(t, invoices.EnsureTable(t.Context()))
	return f, invoices, receipts
}

func paidMore(_ context.Context, r *receipt) error { r.Paid++; return nil }

// refusesType checks that calls for an item of another type say so, and write nothing.
func refusesType(t *testing.T, f *suite.Fixture, key repo.Key, stored string, calls map[string]func(context.Context) error) {
	t.Helper()
	before := f.Raw(t, key)
	for name, call := range calls {
		var e *repo.TypeError
		err := call(t.Context())
		if !errors.As(err, &e) || !errors.Is(err, repo.ErrSchema) || repo.VerdictOf(err) != repo.NotWritten || repo.Retryable(err) {
			t.Errorf("%s of an item of type %q: %v", name, stored, err)
			continue
		}
		if fmt.Sprint(e.Key) != fmt.Sprint(key) || e.Table != f.Table || e.Type != "receipt" || e.Stored != stored {
			t.Errorf("%s: %+v", name, e)
		}
		if after := f.Raw(t, key); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s has written: %v, was %v", name, after, before)
		}
	}
}

// strangers are items of another type, as they may be found.
func strangers(t *testing.T, f *suite.Fixture, invoices *repo.Table[invoice]) map[string]struct {
	key    repo.Key
	stored string
} {
	ctx := t.Context()
	all := map[string]struct {
		key    repo.Key
		stored string
	}{
		"invoice":          {repo.Key{Partition: "i", Sort: 1}, "invoice"},
		"invoice, held":    {repo.Key{Partition: "i", Sort: 2}, "invoice"},
		"item of no type":  {repo.Key{Partition: "i", Sort: 3}, ""},
		"type of a number": {repo.Key{Partition: "i", Sort: 4}, ""},
	}
	r := rig.Must(pessimistic.New(invoices, pessimistic.Config{}))(t)
	for n := range 2 {
		rig.Must(r.Create(ctx, invoice{ID: "i", N: n + 1, At: 1}))(t)
	}
	held := rig.Must(r.Acquire(ctx, repo.Key{Partition: "i", Sort: 2}))(t)
	t.Cleanup(func() { rig.Is(t, held.Release(context.Background())) })
	for n, more := range map[int]map[string]types.AttributeValue{3: {"total": &types.AttributeValueMemberN{Value: "1"}}, 4: {"kind": &types.AttributeValueMemberN{Value: "1"}}} {
		item := rig.Must(invoices.EncodeKey(repo.Key{Partition: "i", Sort: n}))(t)
		maps.Copy(item, more)
		rig.Must(f.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &f.Table, Item: item}))(t)
	}
	return all
}

func TestNoStrategyTakesAnItemOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, s := range suite.StrategiesOf[receipt]() {
		t.Run(s.Name, func(t *testing.T) {
			f, invoices, receipts := shared(t)
			r := s.Open(t, receipts)
			for _, at := range strangers(t, f, invoices) {
				id, _ := at.key.Partition.(string)
				n, _ := at.key.Sort.(int)
				never := func(context.Context, *receipt) error {
					t.Errorf("%v: the change ran", at.key)
					return nil
				}
				refusesType(t, f, at.key, at.stored, map[string]func(context.Context) error{
					"Get": func(ctx context.Context) error { _, err := r.Get(ctx, at.key); return err },
					"Create": func(ctx context.Context) error {
						_, err := r.Create(ctx, receipt{ID: id, N: n, At: 9})
						return err
					},
					"Update": func(ctx context.Context) error { _, err := r.Update(ctx, at.key, never); return err },
					"Upsert": func(ctx context.Context) error { _, err := r.Upsert(ctx, at.key, never); return err },
					"Delete": func(ctx context.Context) error { return r.Delete(ctx, at.key) },
				})
			}
		})
	}
}

func TestNoCallTakesAnItemOfAnotherType(t *testing.T) {
	t.Parallel()
	f, invoices, receipts := shared(t)
	n := rig.Must(nolock.New(receipts, nolock.Config{}))(t)
	o := rig.Must(optimistic.New(receipts, optimistic.Config{}))(t)
	p := rig.Must(pessimistic.New(receipts, pessimistic.Config{}))(t)
	add := expression.Add(expression.Name("paid"), expression.Value(1))
	for name, at := range strangers(t, f, invoices) {
		id, _ := at.key.Partition.(string)
		sort, _ := at.key.Sort.(int)
		version := invoices.Version(rig.Must(decoded(invoices, f.Raw(t, at.key)))(t))
		mine := receipt{ID: id, N: sort, At: 9, Version: version}
		newest := mine
		newest.Version = 0
		in := func(do func(context.Context, *txn.Tx) error) func(context.Context) error {
			return func(ctx context.Context) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					_, err := o.In(tx).Upsert(ctx, repo.Key{Partition: "beside", Sort: 1}, paidMore)
					return errors.Join(err, do(ctx, tx))
				})
			}
		}
		calls := map[string]func(context.Context) error{
			"Put":                func(ctx context.Context) error { return n.Put(ctx, mine) },
			"nolock.Apply":       func(ctx context.Context) error { return n.Apply(ctx, at.key, 9, add) },
			"DeleteAt":           func(ctx context.Context) error { return n.DeleteAt(ctx, at.key, 9) },
			"optimistic.Apply":   func(ctx context.Context) error { _, err := o.Apply(ctx, at.key, add); return err },
			"Once.Apply":         func(ctx context.Context) error { _, err := o.Once("m").Apply(ctx, at.key, add); return err },
			"Once.Update":        func(ctx context.Context) error { _, err := o.Once("m").Update(ctx, at.key, paidMore); return err },
			"Save":               func(ctx context.Context) error { _, err := o.Save(ctx, mine); return err },
			"Save of a new item": func(ctx context.Context) error { _, err := o.Save(ctx, newest); return err },
			"Remove":             func(ctx context.Context) error { return o.Remove(ctx, mine) },
			"pessimistic.Apply":  func(ctx context.Context) error { _, err := p.Apply(ctx, at.key, add); return err },
			"Acquire":            func(ctx context.Context) error { _, err := p.Acquire(ctx, at.key); return err },
			"TryAcquire":         func(ctx context.Context) error { _, err := p.TryAcquire(ctx, at.key); return err },
			"AcquireOrCreate":    func(ctx context.Context) error { _, err := p.Locker().AcquireOrCreate(ctx, at.key); return err },
			"pessimistic.Once":   func(ctx context.Context) error { _, err := p.Once("m").Upsert(ctx, at.key, paidMore); return err },
			"Break":              func(ctx context.Context) error { return p.Locker().Break(ctx, at.key, 1) },
			"Inspect":            func(ctx context.Context) error { _, err := receipts.Inspect(ctx, at.key); return err },
			"GetMany":            func(ctx context.Context) error { _, err := receipts.GetMany(ctx, at.key); return err },
			"Decode":             func(context.Context) error { _, err := receipts.Decode(f.Raw(t, at.key)); return err },
			"In.Get":             in(func(ctx context.Context, tx *txn.Tx) error { _, err := o.In(tx).Get(ctx, at.key); return err }),
			"In.Create":          in(func(ctx context.Context, tx *txn.Tx) error { _, err := o.In(tx).Create(ctx, mine); return err }),
			"In.Update": in(func(ctx context.Context, tx *txn.Tx) error {
				_, err := o.In(tx).Update(ctx, at.key, paidMore)
				return err
			}),
			"In.Upsert": in(func(ctx context.Context, tx *txn.Tx) error {
				_, err := o.In(tx).Upsert(ctx, at.key, paidMore)
				return err
			}),
			"In.Delete": in(func(ctx context.Context, tx *txn.Tx) error { return o.In(tx).Delete(ctx, at.key) }),
			"In.Save":   in(func(ctx context.Context, tx *txn.Tx) error { _, err := o.In(tx).Save(ctx, mine); return err }),
			"In.Remove": in(func(ctx context.Context, tx *txn.Tx) error { return o.In(tx).Remove(ctx, mine) }),
			"In.Apply":  in(func(ctx context.Context, tx *txn.Tx) error { return o.In(tx).Apply(ctx, at.key, add) }),
			"Once.In.Update": in(func(ctx context.Context, tx *txn.Tx) error {
				_, err := o.Once("m").In(tx).Update(ctx, at.key, paidMore)
				return err
			}),
			"nolock.In.Put":        in(func(ctx context.Context, tx *txn.Tx) error { return n.In(tx).Put(ctx, mine) }),
			"nolock.In.Apply":      in(func(ctx context.Context, tx *txn.Tx) error { return n.In(tx).Apply(ctx, at.key, 9, add) }),
			"nolock.In.DeleteAt":   in(func(ctx context.Context, tx *txn.Tx) error { return n.In(tx).DeleteAt(ctx, at.key, 9) }),
			"pessimistic.In.Get":   in(func(ctx context.Context, tx *txn.Tx) error { _, err := p.In(tx).Get(ctx, at.key); return err }),
			"pessimistic.In.Apply": in(func(ctx context.Context, tx *txn.Tx) error { return p.In(tx).Apply(ctx, at.key, add) }),
			"Prefetch":             in(func(ctx context.Context, tx *txn.Tx) error { return tx.Prefetch(ctx, o.Keys(at.key)) }),
		}
		t.Run(name, func(t *testing.T) { refusesType(t, f, at.key, at.stored, calls) })
	}
	if _, err := o.Get(t.Context(), repo.Key{Partition: "beside", Sort: 1}); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("a transaction with an item of another type has written the other item: %v", err)
	}
}

// decoded is an item of a table, whatever it is: an empty one where it is none.
func decoded[T any](table *repo.Table[T], raw map[string]types.AttributeValue) (T, error) {
	item, err := table.Decode(raw)
	if errors.Is(err, repo.ErrSchema) {
		err = nil
	}
	return item, err
}

// An item that is nothing but its key looks in some answers like one that is not there.
func TestAnItemOfNothingButItsKeyIsOfNoType(t *testing.T) {
	t.Parallel()
	f, _, receipts := shared(t)
	key := repo.Key{Partition: "bare", Sort: 1}
	rig.Must(f.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.Table, Item: rig.Must(receipts.EncodeKey(key))(t)}))(t)
	for _, s := range suite.StrategiesOf[receipt]() {
		r := s.Open(t, receipts)
		t.Run(s.Name, func(t *testing.T) {
			refusesType(t, f, key, "", map[string]func(context.Context) error{
				"Get":    func(ctx context.Context) error { _, err := r.Get(ctx, key); return err },
				"Upsert": func(ctx context.Context) error { _, err := r.Upsert(ctx, key, paidMore); return err },
			})
		})
	}
	n := rig.Must(nolock.New(receipts, nolock.Config{}))(t)
	refusesType(t, f, key, "", map[string]func(context.Context) error{
		"Put":      func(ctx context.Context) error { return n.Put(ctx, receipt{ID: "bare", N: 1, At: 1}) },
		"DeleteAt": func(ctx context.Context) error { return n.DeleteAt(ctx, key, 1) },
	})
}

// times are when an invoice was made and changed.
func (i invoice) times() (time.Time, time.Time) { return i.Made, time.Unix(0, i.Changed) }

func TestTypeAndTimesAreWrittenByEveryStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range suite.StrategiesOf[invoice]() {
		t.Run(s.Name, func(t *testing.T) {
			_, invoices, _ := shared(t)
			r, ctx, key := s.Open(t, invoices), t.Context(), repo.Key{Partition: "i", Sort: 1}
			began := time.Now()
			as := func(what string, got invoice, made time.Time, total int64) invoice {
				t.Helper()
				is := rig.Must(r.Get(ctx, key))(t)
				if !reflect.DeepEqual(got, is) {
					t.Errorf("%s returns %+v, stored is %+v", what, got, is)
				}
				if _, changed := is.times(); is.Kind != "invoice" || is.Total != total || changed.Before(began) || !made.IsZero() && !is.Made.Equal(made) || what != "Upsert" && made.IsZero() && is.Made.Before(began) {
					t.Errorf("after %s: %+v", what, is)
				}
				return is
			}
			first := as("Create", rig.Must(r.Create(ctx, invoice{ID: "i", N: 1, At: 1, Made: time.Unix(1, 0), Changed: 1}))(t), time.Time{}, 0)
			began = time.Now()
			add := func(_ context.Context, i *invoice) error { i.Total++; return nil }
			second := as("Update", rig.Must(r.Update(ctx, key, add))(t), first.Made, 1)
			same := rig.Must(r.Update(ctx, key, func(context.Context, *invoice) error { return nil }))(t)
			if as("a change of nothing", same, first.Made, 1) != second {
				t.Errorf("a change of nothing has changed %+v to %+v", second, same)
			}
			began = time.Now()
			as("Upsert", rig.Must(r.Upsert(ctx, key, add))(t), first.Made, 2)
			for name, alter := range map[string]func(*invoice){
				"type":    func(i *invoice) { i.Kind = "receipt" },
				"no type": func(i *invoice) { i.Kind = "" },
				"created": func(i *invoice) { i.Made = i.Made.Add(1) },
				"updated": func(i *invoice) { i.Changed++ },
			} {
				_, err := r.Update(ctx, key, func(_ context.Context, i *invoice) error { alter(i); return nil })
				if !errors.Is(err, repo.ErrFixed) || repo.VerdictOf(err) != repo.NotWritten {
					t.Errorf("a change of %s: %v", name, err)
				}
			}
			key.Sort = 2
			began = time.Now()
			as("Upsert of a new item", rig.Must(r.Upsert(ctx, key, func(_ context.Context, i *invoice) error {
				if i.At = 1; i.Kind != "invoice" {
					t.Errorf("a new item is %+v", *i)
				}
				return nil
			}))(t), time.Time{}, 0)
			if _, err := r.Create(ctx, invoice{ID: "i", N: 3, Kind: "receipt", At: 1}); !errors.As(err, new(*repo.TypeError)) {
				t.Errorf("Create of an item that says another type: %v", err)
			}
		})
	}
}

func TestTypeAndTimesAreWrittenByEveryCall(t *testing.T) {
	t.Parallel()
	f, invoices, _ := shared(t)
	ctx := t.Context()
	n := rig.Must(nolock.New(invoices, nolock.Config{}))(t)
	o := rig.Must(optimistic.New(invoices, optimistic.Config{}))(t)
	p := rig.Must(pessimistic.New(invoices, pessimistic.Config{}))(t)
	add := expression.Add(expression.Name("total"), expression.Value(1))
	plus := func(_ context.Context, i *invoice) error { i.Total++; return nil }
	key := func(n int) repo.Key { return repo.Key{Partition: "i", Sort: n} }
	in := func(do func(context.Context, *txn.Tx) error) func(invoice) error {
		return func(invoice) error { return txn.Run(ctx, do) }
	}
	item := func(n int) invoice { return invoice{ID: "i", N: n, At: 9} }
	at := 0
	for name, change := range map[string]func(stored invoice) error{
		"Put":               func(i invoice) error { i.At, i.Made, i.Total = 9, time.Time{}, 1; return n.Put(ctx, i) },
		"nolock.Apply":      func(invoice) error { return n.Apply(ctx, key(at), 9, add) },
		"optimistic.Apply":  func(invoice) error { _, err := o.Apply(ctx, key(at), add); return err },
		"pessimistic.Apply": func(invoice) error { _, err := p.Apply(ctx, key(at), add); return err },
		"Save":              func(i invoice) error { i.Made, i.Total = time.Time{}, 1; _, err := o.Save(ctx, i); return err },
		"Once":              func(invoice) error { _, err := o.Once("m").Update(ctx, key(at), plus); return err },
		"Once, nothing else": func(invoice) error {
			_, err := o.Once("m").Update(ctx, key(at), func(context.Context, *invoice) error { return nil })
			return err
		},
		"Commit": func(invoice) error {
			held, err := p.Acquire(ctx, key(at))
			if err == nil {
				i := held.Item()
				i.Total++
				_, err = held.Commit(ctx, i)
			}
			return err
		},
		"In.Update": in(func(ctx context.Context, tx *txn.Tx) error { _, err := o.In(tx).Update(ctx, key(at), plus); return err }),
		"In.Apply":  in(func(ctx context.Context, tx *txn.Tx) error { return o.In(tx).Apply(ctx, key(at), add) }),
		"Get, In.Apply": in(func(ctx context.Context, tx *txn.Tx) error {
			_, err := o.In(tx).Get(ctx, key(at))
			return errors.Join(err, o.In(tx).Apply(ctx, key(at), add))
		}),
		"In.Save": in(func(ctx context.Context, tx *txn.Tx) error {
			i := item(at)
			i.Version, i.Total = 1, 1
			_, err := o.In(tx).Save(ctx, i)
			return err
		}),
		"Get, In.Save": in(func(ctx context.Context, tx *txn.Tx) error {
			i, err := o.In(tx).Get(ctx, key(at))
			i.Made, i.Total = time.Time{}, 1
			_, again := o.In(tx).Save(ctx, i)
			return errors.Join(err, again)
		}),
		"nolock.In.Put":   in(func(ctx context.Context, tx *txn.Tx) error { i := item(at); i.Total = 1; return n.In(tx).Put(ctx, i) }),
		"nolock.In.Apply": in(func(ctx context.Context, tx *txn.Tx) error { return n.In(tx).Apply(ctx, key(at), 9, add) }),
	} {
		at++
		first := item(at)
		first.At = 1
		first = rig.Must(o.Create(ctx, first))(t)
		if err := change(first); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is := rig.Must(o.Get(ctx, key(at)))(t)
		total := int64(1)
		if name == "Once, nothing else" {
			total = 0
		}
		if is.Kind != "invoice" || is.Total != total || !is.Made.Equal(first.Made) || is.Changed <= first.Changed {
			t.Errorf("after %s: %+v, was %+v", name, is, first)
		}
	}
	for name, begin := range map[string]func() error{
		"Put":          func() error { return n.Put(ctx, item(at)) },
		"nolock.Apply": func() error { return n.Apply(ctx, key(at), 9, add) },
		"In.Create": func() error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { _, err := o.In(tx).Create(ctx, item(at)); return err })
		},
		"In.Upsert": func() error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := p.In(tx).Upsert(ctx, key(at), func(_ context.Context, i *invoice) error { i.At = 9; return nil })
				return err
			})
		},
		"nolock.In.Apply": func() error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return n.In(tx).Apply(ctx, key(at), 9, add) })
		},
	} {
		for _, over := range []string{"nothing", "a tombstone", "a tombstone of another type"} {
			at++
			switch over {
			case "a tombstone":
				rig.Is(t, n.Put(ctx, invoice{ID: "i", N: at, At: 1}))
				rig.Is(t, n.DeleteAt(ctx, key(at), 2))
			case "a tombstone of another type":
				bury(t, f, key(at))
			}
			began := time.Now()
			if err := begin(); err != nil {
				t.Errorf("%s over %s: %v", name, over, err)
				continue
			}
			is, err := o.Get(ctx, key(at))
			if made, changed := is.times(); err != nil || is.Kind != "invoice" || made.Before(began) || changed.Before(began) {
				t.Errorf("%s over %s: %+v, %v", name, over, is, err)
			}
		}
	}
	for attr, update := range map[string]expression.UpdateBuilder{
		"type":    expression.Set(expression.Name("kind"), expression.Value("receipt")),
		"created": expression.Remove(expression.Name("made")),
		"updated": expression.Set(expression.Name("changed"), expression.Value(1)),
	} {
		if _, err := o.Apply(ctx, key(1), update); !errors.Is(err, repo.ErrFixed) {
			t.Errorf("Apply to the attribute of %s: %v", attr, err)
		}
		if err := n.Apply(ctx, key(1), 99, update); !errors.Is(err, repo.ErrFixed) {
			t.Errorf("nolock.Apply to the attribute of %s: %v", attr, err)
		}
	}
}

// bury leaves a tombstone that has kept an attribute by the name of one of invoice's.
func bury(t *testing.T, f *suite.Fixture, key repo.Key) {
	t.Helper()
	type voucher struct {
		ID string `dynamodbav:"id" repo:"pk"`
		N  int    `dynamodbav:"seq" repo:"sk"`
		At int64  `dynamodbav:"at" repo:"eventtime"`
	}

	table := rig.Must(repo.NewTable[voucher](f.Client, f.Table, repo.TableConfig{}))(t)
	r := rig.Must(nolock.New(table, nolock.Config{}))(t)
	rig.Is(t, r.Apply(t.Context(), key, 1, expression.Set(expression.Name("made"), expression.Value("2001-01-01T00:00:00Z")).Set(expression.Name("kind"), expression.Value("voucher"))))
	rig.Is(t, r.DeleteAt(t.Context(), key, 2))
}
