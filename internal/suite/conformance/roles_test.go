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

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
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
func shared(t *testing.T) (*fixture.Fixture, *repo.Table[invoice], *repo.Table[receipt]) {
	f := fixture.Empty(t)
	invoices := rig.Must(repo.NewTable[invoice](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	receipts := rig.Must(repo.NewTable[receipt](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	rig.Is(t, invoices.EnsureTable(t.Context()))
	return f, invoices, receipts
}

func paidMore(_ context.Context, r *receipt) error { r.Paid++; return nil }

// refusesType checks that calls for an item of another type say so, and write nothing.
func refusesType(t *testing.T, f *fixture.Fixture, key repo.Key, stored string, calls map[string]func(context.Context) error) {
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
func strangers(t *testing.T, f *fixture.Fixture, invoices *repo.Table[invoice]) map[string]struct {
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
	for _, s := range fixture.StrategiesOf[receipt]() {
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
	for _, s := range fixture.StrategiesOf[receipt]() {
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
