package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// numbered is an item whose key is a number, of whatever size.
type numbered struct {
	ID      attributevalue.Number `dynamodbav:"id" repo:"pk"`
	At      attributevalue.Number `dynamodbav:"at" repo:"sk"`
	N       int                   `dynamodbav:"n"`
	Version int64                 `dynamodbav:"version" repo:"version"`
}

func number(id attributevalue.Number) repo.Key { return repo.Key{Partition: id, Sort: id} }

// A number is one key in every form in which it can be written: a transaction that names
// its item in several has one item.
func TestFormsOfANumber(t *testing.T) {
	r := rig.New(t)
	tab := table[numbered](t, r, "-numbers", true)
	o := rig.Must(optimistic.New(tab, optimistic.Config{Warm: 100}))(t)
	p := rig.Must(pessimistic.New(tab, pessimistic.Config{Lease: lease}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience) // whoever waits for itself does so for ever
	defer cancel()
	add := func(_ context.Context, item *numbered) error { item.N++; return nil }
	for _, forms := range [][]attributevalue.Number{
		{"1", "1.0", "1e0", "10e-1", "0.1e1", "+1", "001"},
		{"0", "-0", "0.0", "0e5", "-0.00e-7"},
		{"-120", "-12e1", "-1.2E+2", "-120.0"},
		{"0.10", ".1", "1e-1", "0.100"},
		{"12345678901234567890123456789012345678", "1234567890123456789012345678901234567.8e1", "12345678901234567890123456789012345678.0"},
		{"9e125", "90e124", "0.9e126"},
		{"1e-130", "0.1e-129"},
	} {
		rig.Must(o.Create(ctx, numbered{ID: forms[0], At: forms[0]}))(t)
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if err := tx.Prefetch(ctx, p.Keys(number(forms[0]), number(forms[1]))); err != nil {
				return err
			}
			for _, form := range forms {
				if _, err := p.In(tx).Update(ctx, number(form), add); err != nil {
					return err
				}
			}
			return nil
		})
		rig.Is(t, err)
		err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if err := tx.Prefetch(ctx, o.Keys(number(forms[1]), number(forms[0]))); err != nil {
				return err
			}
			for _, form := range forms {
				if _, err := o.In(tx).Update(ctx, number(form), add); err != nil {
					return err
				}
			}
			return nil
		})
		rig.Is(t, err)
		for _, form := range forms {
			rig.Must(o.Update(ctx, number(form), add))(t)
			_, err := p.Update(ctx, number(form), func(ctx context.Context, _ *numbered) error {
				_, err := p.Update(ctx, number(forms[0]), add)
				if !errors.Is(err, repo.ErrNested) {
					t.Errorf("%s inside %s: %v", forms[0], form, err)
				}
				return nil
			})
			rig.Is(t, err)
		}
		if got := rig.Must(o.Get(ctx, number(forms[0])))(t); got.N != 3*len(forms) {
			t.Errorf("%s: %d of %d changes", forms[0], got.N, 3*len(forms))
		}
	}
}
