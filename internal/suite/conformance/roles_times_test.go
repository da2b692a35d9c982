package conformance_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// times are when an invoice was made and changed.
func (i invoice) times() (time.Time, time.Time) { return i.Made, time.Unix(0, i.Changed) }

func TestTypeAndTimesAreWrittenByEveryStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range fixture.StrategiesOf[invoice]() {
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
			rig.Equal(t, as("a change of nothing", same, first.Made, 1), second, "a change of nothing has changed to %+v", same)
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
func bury(t *testing.T, f *fixture.Fixture, key repo.Key) {
	t.Helper()
	type voucher struct {
		ID string `dynamodbav:"id" repo:"pk"`
		N  int    `dynamodbav:"seq" repo:"sk"`
		At int64  `dynamodbav:"at" repo:"eventtime"`
	}

	table := rig.Must(repo.NewTable[voucher](f.Client, f.Table, repo.TableConfig{AnyAttribute: true}))(t)
	r := rig.Must(nolock.New(table, nolock.Config{}))(t)
	rig.Is(t, r.Apply(t.Context(), key, 1, expression.Set(expression.Name("made"), expression.Value("2001-01-01T00:00:00Z")).Set(expression.Name("kind"), expression.Value("voucher"))))
	rig.Is(t, r.DeleteAt(t.Context(), key, 2))
}
