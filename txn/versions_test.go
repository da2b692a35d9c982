package txn_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Save and Remove go by the version, as the transaction has left it, and read nothing.
func TestSaveAndRemoveInside(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	x, y, z := w.id("x"), w.id("y"), w.id("z")
	made := map[string]counted{}
	for _, id := range []string{x, y} {
		made[id] = rig.Must(r.Create(t.Context(), counted{ID: id, N: 10}))(t)
	}
	w.Count.Reset()
	var saved counted
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) (err error) {
		item := made[x]
		item.N = 11
		if saved, err = r.In(tx).Save(ctx, item); err != nil {
			return err
		}
		if err := r.In(tx).Remove(ctx, made[y]); err != nil {
			return err
		}
		_, err = r.In(tx).Save(ctx, counted{ID: z, N: 1}) // without a version it is a Create
		return err
	}))
	if got := w.Count.Counts(); !maps.Equal(got, map[string]int{"TransactWriteItems": 1}) || saved.Version != 2 || saved.N != 11 {
		t.Errorf("%v, %+v", got, saved)
	}
	has(t, w.stores["optimistic"], x, 11)
	has(t, w.stores["optimistic"], y, -1)
	has(t, w.stores["optimistic"], z, 1)

	stale := func(do func(ctx context.Context, v *optimistic.View[counted]) error, want error) {
		t.Helper()
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return do(ctx, r.In(tx)) })
		rig.Is(t, err, want)
	}
	stale(func(ctx context.Context, v *optimistic.View[counted]) error {
		_, err := v.Save(ctx, made[x])
		return err
	}, repo.ErrConflict)
	stale(func(ctx context.Context, v *optimistic.View[counted]) error { return v.Remove(ctx, made[x]) }, repo.ErrConflict)
	stale(func(ctx context.Context, v *optimistic.View[counted]) error {
		_, err := v.Save(ctx, made[y])
		return err
	}, repo.ErrNotFound)
	stale(func(ctx context.Context, v *optimistic.View[counted]) error { return v.Remove(ctx, made[y]) }, repo.ErrNotFound)
	// What the transaction has made of the item counts, and what it saves it reads.
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		v := r.In(tx)
		item, err := v.Save(ctx, saved)
		if err != nil {
			return err
		}
		if _, err = v.Save(ctx, saved); !errors.Is(err, repo.ErrConflict) {
			t.Errorf("the same version twice: %v", err)
		}
		if item, err = v.Update(ctx, key(x), func(_ context.Context, c *counted) error { c.N = 20; return nil }); err != nil {
			return err
		}
		item.N++
		_, err = v.Save(ctx, item)
		return err
	}))
	has(t, w.stores["optimistic"], x, 21)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		item, err := r.In(tx).Get(ctx, key(x))
		if err != nil {
			return err
		}
		if err := r.In(tx).Remove(ctx, item); err != nil {
			return err
		}
		if _, err := r.In(tx).Get(ctx, key(x)); !errors.Is(err, repo.ErrNotFound) {
			t.Errorf("read after Remove: %v", err)
		}
		return nil
	}))
	has(t, w.stores["optimistic"], x, -1)
}

// Save without a version takes an item from before the library as it is outside, and
// none that has a version.
func TestSaveWithoutAVersionInside(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	x, y := w.id("x"), w.id("y")
	rig.Must(r.Create(t.Context(), counted{ID: y, N: 5}))(t)
	save := func(id string) (saved counted, err error) {
		err = txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			saved, err = r.In(tx).Save(ctx, counted{ID: id, N: 11})
			return err
		})
		return saved, err
	}
	for name, version := range map[string]types.AttributeValue{"no version": nil, "version 0": &types.AttributeValueMemberN{Value: "0"}} {
		item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: x}, "n": &types.AttributeValueMemberN{Value: "10"}, "other": &types.AttributeValueMemberS{Value: "stays"}}
		if version != nil {
			item["version"] = version
		}
		rig.Must(rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(r.Table().Name()), Item: item}))(t)
		saved, err := save(x)
		rig.Is(t, err)
		if saved.Version != 1 || saved.N != 11 {
			t.Errorf("%s: %+v", name, saved)
		}
		stored := w.raw(t, "-o", x)
		if stored["other"] == nil {
			t.Errorf("%s: what the type does not know is lost: %v", name, stored)
		}
		has(t, w.stores["optimistic"], x, 11)
	}
	_, err := save(y)
	rig.Is(t, err, repo.ErrExists)
	has(t, w.stores["optimistic"], y, 5)
}

// A deletion that reads nothing is none under the id of a transaction: the item is
// asked for it.
func TestRemoveUnderAnID(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	x := w.id("x")
	rig.Must(r.Create(t.Context(), counted{ID: x}))(t)
	item := rig.Must(r.Get(t.Context(), key(x)))(t)
	rig.Is(t, txn.Once("m").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) (err error) {
		item, err = r.In(tx).Save(ctx, item)
		return err
	}))
	o := txn.Once("m")
	rig.Is(t, o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return r.In(tx).Remove(ctx, item) }))
	if !o.Repeated() {
		t.Error("the item was not asked for the id")
	}
	has(t, w.stores["optimistic"], x, 0)
}

// An Upsert makes the item also where that is nothing but its key.
func TestUpsertOfAKeyAlone(t *testing.T) {
	type bare struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	w := newWorld(t)
	r := rig.Must(pessimistic.New(table[bare](t, w.Rig, "-p", false), pessimistic.Config{}))(t)
	x := key(w.id("x"))
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		_, err := r.In(tx).Upsert(ctx, x, func(context.Context, *bare) error { return nil })
		return err
	}))
	rig.Must(r.Get(t.Context(), x))(t)
}
