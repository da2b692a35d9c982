package txn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// moveOnce is move under an id.
func moveOnce(ctx context.Context, o *txn.Operation, a, b store, x, y string) error {
	return o.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		if err := a.in(tx).add(ctx, x, -3); err != nil {
			return err
		}
		return b.in(tx).add(ctx, y, 3)
	})
}

// twoOf makes an item of ten of each of two kinds.
func twoOf(t *testing.T, kind, other string) (w *world, a, b store, x, y string) {
	t.Helper()
	w = newWorld(t)
	a, b, x, y = w.stores[kind], w.stores[other], w.id("x"), w.id("y")
	rig.Is(t, a.create(t.Context(), x, 10))
	rig.Is(t, b.create(t.Context(), y, 10))
	w.Count.Reset()
	return w, a, b, x, y
}

// A transaction is applied once under one id, of whatever strategies its items are,
// and costs no request more. A repetition is done with the first item that it
// touches: a lock that it takes there it gives back.
func TestOnce(t *testing.T) {
	for _, kind := range kinds {
		for _, other := range kinds {
			t.Run(kind+" and "+other, func(t *testing.T) {
				t.Parallel()
				w, a, b, x, y := twoOf(t, kind, other)
				first := 3
				again := map[string]int{"optimistic": 1, "optimistic, fair": 1, "nolock": 1, "pessimistic": 2, "pessimistic, versions": 2, "fair": 2}[kind]
				for i, want := range []int{first, again, again} {
					w.Count.Reset()
					o := txn.Once("m")
					rig.Is(t, moveOnce(t.Context(), o, a, b, x, y))
					if n := w.Count.Total(); n != want || o.Repeated() != (i > 0) {
						t.Errorf("run %d: %v, want %d; repeated %v", i, w.Count.Counts(), want, o.Repeated())
					}
				}
				o := txn.Once("another")
				rig.Is(t, moveOnce(t.Context(), o, a, b, x, y))
				if o.Repeated() {
					t.Error("another id is a repetition")
				}
				has(t, a, x, 4)
				has(t, b, y, 16)
			})
		}
	}
}

// The id is found on whatever item the first run has written, although others come
// before it; whatever the closure makes of that is not asked.
func TestOnceIsFoundOnAnyItem(t *testing.T) {
	w, a, b, x, y := twoOf(t, "optimistic", "pessimistic")
	z := w.id("z")
	rig.Is(t, a.create(t.Context(), z, 10))
	rig.Is(t, moveOnce(t.Context(), txn.Once("m"), a, b, x, y))
	for name, run := range map[string]func(ctx context.Context, tx *txn.Tx) error{
		"behind one that it did not write": func(ctx context.Context, tx *txn.Tx) error {
			rig.Is(t, a.in(tx).add(ctx, z, 1))
			return b.in(tx).add(ctx, y, 1)
		},
		"read only": func(ctx context.Context, tx *txn.Tx) error {
			rig.Is(t, a.in(tx).add(ctx, z, 1))
			_, err := b.in(tx).get(ctx, y)
			return err
		},
		"read beforehand": func(ctx context.Context, tx *txn.Tx) error {
			return tx.Prefetch(ctx, a.keys(z, x))
		},
		"locked beforehand": func(ctx context.Context, tx *txn.Tx) error {
			return tx.Prefetch(ctx, b.keys(y))
		},
		"made anew": func(ctx context.Context, tx *txn.Tx) error { return a.in(tx).create(ctx, x, 1) },
		"not believed": func(ctx context.Context, tx *txn.Tx) error {
			_ = a.in(tx).add(ctx, x, 1)
			_ = a.in(tx).add(ctx, z, 1)
			return nil
		},
		"answered by an error": func(ctx context.Context, tx *txn.Tx) error {
			_ = a.in(tx).add(ctx, x, 1)
			return errors.New("nothing to take from")
		},
	} {
		o := txn.Once("m")
		if err := o.Run(t.Context(), run); err != nil || !o.Repeated() {
			t.Errorf("%s: %v, repeated %v", name, err, o.Repeated())
		}
		has(t, a, x, 7)
		has(t, b, y, 13)
		has(t, a, z, 10)
	}
	rig.Is(t, b.add(t.Context(), y, 1)) // its lock was given back
}

// What is not promised: a run that touches nothing that the first one has written is
// another transaction, and one that fails before is not asked for.
func TestOnceOnOtherItems(t *testing.T) {
	_, a, b, x, y := twoOf(t, "optimistic", "pessimistic")
	rig.Is(t, txn.Once("m").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		if _, err := a.in(tx).get(ctx, x); err != nil { // only read
			return err
		}
		return b.in(tx).add(ctx, y, 1)
	}))
	for range 2 {
		rig.Is(t, txn.Once("m").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return a.in(tx).add(ctx, x, 1) }))
	}
	has(t, a, x, 11)
	early := errors.New("early")
	rig.Is(t, txn.Once("m").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return early }), early)
	// Nothing written, nothing remembered.
	for range 2 {
		o := txn.Once("n")
		rig.Is(t, o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { _, err := a.in(tx).get(ctx, x); return err }))
		if o.Repeated() {
			t.Error("a transaction that wrote nothing is remembered")
		}
	}
}

// Events that read nothing carry the id too: the request that repeats them is refused
// by it. The first one of an epoch finds the item in the one before.
func TestOnceOfEvents(t *testing.T) {
	w := newWorld(t)
	r, x, y := w.events(t)
	z := w.id("z")
	events := func(at int64) func(context.Context, *txn.Tx) error {
		return func(ctx context.Context, tx *txn.Tx) error {
			view := r.In(tx)
			if err := view.Apply(ctx, key(z), at, set(int(at))); err != nil {
				return err
			}
			if err := view.Put(ctx, event{ID: x, N: int(at), At: at}); err != nil {
				return err
			}
			return view.DeleteAt(ctx, key(y), at)
		}
	}
	expect := func(id string, at int64, repeated bool, requests int) {
		t.Helper()
		w.Count.Reset()
		o := txn.Once(id)
		rig.Is(t, o.Run(t.Context(), events(at)))
		if n := w.Count.Total(); o.Repeated() != repeated || n != requests {
			t.Errorf("%s at %d: repeated %v, %d requests", id, at, o.Repeated(), n)
		}
	}
	expect("m", 6, false, 1)
	expect("m", 7, true, 1) // another event under the id
	has(t, w.stores["nolock"], x, 6)
	has(t, w.stores["nolock"], z, 6)
	expect("n", 8, false, 1)
	for _, id := range []string{x, y, z} {
		w.inEpoch(t, "-n", id, -5)
	}
	expect("o", 9, false, 2)
	expect("n", 10, true, 1) // found in the past set
	expect("o", 10, true, 1)
	has(t, w.stores["nolock"], x, 9)
	has(t, w.stores["nolock"], y, -1)
}

// now is the present epoch.
func now() int64 { return time.Now().Unix() / 3600 }

func rawKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

// inEpoch puts an item so many epochs away from the present one.
func (w *world) inEpoch(t *testing.T, table, id string, epochs int64) {
	t.Helper()
	n := types.AttributeValueMemberN{Value: strconv.FormatInt(now()+epochs, 10)}
	rig.Must(w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(w.Table + table), UpdateExpression: aws.String("SET onceEpoch = :e"),
		ConditionExpression: aws.String("attribute_exists(once)"), Key: rawKey(id), ExpressionAttributeValues: map[string]types.AttributeValue{":e": &n}}))(t)
}

// A deletion by event time leaves its id in the tombstone; the others leave none, and
// the id is found on what else the transaction has written.
func TestOnceWithDeletions(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, a, b, x, y := twoOf(t, kind, "optimistic")
			z := w.id("z")
			both := func(ctx context.Context, tx *txn.Tx) error {
				if err := a.in(tx).remove(ctx, x); err != nil && (!errors.Is(err, repo.ErrNotFound) || kind == "nolock") {
					return err
				}
				return b.in(tx).add(ctx, y, 1)
			}
			for i := range 2 {
				o := txn.Once("m")
				rig.Is(t, o.Run(t.Context(), both))
				rig.Equal(t, o.Repeated(), i > 0, "run %d: repeated", i)
			}
			has(t, b, y, 11)
			// A new item has the id of the transaction that has made it.
			for i := range 2 {
				o := txn.Once("made")
				rig.Is(t, o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return a.in(tx).create(ctx, z, i) }))
				rig.Equal(t, o.Repeated(), i > 0, "create %d: repeated", i)
			}
			has(t, a, z, 0)
		})
	}
}

// The text of an id is one thing for a transaction and another for an item.
func TestOnceBesideTheIDsOfItems(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	x, y := w.id("x"), w.id("y")
	for _, id := range []string{x, y} {
		rig.Must(r.Create(t.Context(), counted{ID: id}))(t)
	}
	add := func(_ context.Context, c *counted) error { c.N++; return nil }
	rig.Must(r.Once("m").Update(t.Context(), key(x), add))(t)
	for i := range 2 {
		o, line := txn.Once("m"), r.Once("m")
		rig.Is(t, o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for range 2 { // one of them is made
				if _, err := line.In(tx).Update(ctx, key(y), add); err != nil {
					return err
				}
			}
			_, err := r.In(tx).Update(ctx, key(x), add)
			return err
		}))
		rig.Equal(t, o.Repeated(), i > 0, "run %d: repeated", i)
	}
	has(t, w.stores["optimistic"], x, 2)
	has(t, w.stores["optimistic"], y, 1)
}

func TestOnceIsRefused(t *testing.T) {
	w, a, b, x, y := twoOf(t, "optimistic", "nolock")
	rig.Is(t, moveOnce(t.Context(), txn.Once(""), a, b, x, y), repo.ErrConfig)
	rig.Is(t, txn.Once("m").Run(t.Context(), nil), repo.ErrConfig)
	rig.Is(t, moveOnce(t.Context(), txn.Config{Attempts: -1}.Once("m"), a, b, x, y), repo.ErrConfig)
	if w.Count.Total() != 0 {
		t.Error("something was sent")
	}
	// Full of what can go nowhere: none is forgotten.
	ids := make([][]byte, 4096)
	for i := range ids {
		ids[i] = fmt.Appendf(nil, "\x00\x00\x00\x00%08d", i)
	}
	rig.Must(w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(w.Table + "-n"), UpdateExpression: aws.String("SET once = :s, onceEpoch = :e"), Key: rawKey(y),
		ExpressionAttributeValues: map[string]types.AttributeValue{":s": &types.AttributeValueMemberBS{Value: ids}, ":e": &types.AttributeValueMemberN{Value: strconv.FormatInt(now()+1, 10)}}}))(t)
	err := moveOnce(t.Context(), txn.Once("m"), a, b, x, y)
	rig.Is(t, err, repo.ErrTooLarge)
	var failed *txn.Error
	if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].Key != key(y) {
		t.Errorf("%v", err)
	}
	r := rig.Must(nolock.New(table[event](t, w.Rig, "-n", false), nolock.Config{}))(t)
	rig.Is(t, txn.Once("m").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return r.In(tx).Put(ctx, event{ID: y, At: 9}) }), repo.ErrTooLarge)
	has(t, a, x, 10)
	has(t, b, y, 10)
}

// What was written without a read is there for who reads it, also behind a read that has failed
// at the row with the ids.
func TestAReadThatFailsBesideIDsLosesNothing(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	x := w.id("x")
	item := rig.Must(r.Create(t.Context(), counted{ID: x}))(t)
	more := func(_ context.Context, c *counted) error { c.N++; return nil }
	for i := range 70 { // more than an item remembers itself
		item = rig.Must(r.Once(fmt.Sprint(i)).Update(t.Context(), key(x), more))(t)
	}
	w.Faults(func(_ string, _ int, body []byte) fault.Kind {
		if bytes.Contains(body, []byte("dynahold:once:")) {
			return fault.Refuse
		}
		return fault.None
	})
	rig.Is(t, txn.Once(w.id("whole")).Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		item.N = 100
		if _, err := r.In(tx).Save(ctx, item); err != nil {
			return err
		}
		if _, err := r.In(tx).Get(ctx, key(x)); err == nil {
			t.Error("the row was read")
		}
		w.Faults(nil)
		_, err := r.In(tx).Update(ctx, key(x), more)
		return err
	}))
	has(t, w.stores["optimistic"], x, 101)
}
