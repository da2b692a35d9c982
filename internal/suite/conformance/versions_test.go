package conformance_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// counted is an item with a version of some type.
type counted[V int32 | uint32 | int64 | uint64] struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Seq     int    `dynamodbav:"seq" repo:"sk"`
	N       int64  `dynamodbav:"n"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version V      `dynamodbav:"version" repo:"version"`
}

// A version that cannot be counted on is refused by every call that would count it, and
// nothing is written. What does not count it goes on.
func TestVersionsEnd(t *testing.T) {
	t.Parallel()
	f := fixture.New(t)
	t.Run("int64", func(t *testing.T) { versionsEnd[int64](t, f, math.MaxInt64) })
	t.Run("uint64", func(t *testing.T) { versionsEnd[uint64](t, f, math.MaxInt64) })
	t.Run("uint64 beyond", func(t *testing.T) { versionsEnd[uint64](t, f, math.MaxUint64) })
	t.Run("int32", func(t *testing.T) { versionsEnd[int32](t, f, math.MaxInt32) })
	t.Run("uint32", func(t *testing.T) { versionsEnd[uint32](t, f, math.MaxUint32) })
}

func versionsEnd[V int32 | uint32 | int64 | uint64](t *testing.T, f *fixture.Fixture, most uint64) {
	ctx := t.Context()
	table := rig.Must(repo.NewTable[counted[V]](f.Client, f.Table, repo.TableConfig{}))(t)
	locked := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	combining := rig.Must(pessimistic.New(table, pessimistic.Config{Combine: true}))(t)
	free := rig.Must(optimistic.New(table, optimistic.Config{Warm: 10}))(t)
	joining := rig.Must(optimistic.New(table, optimistic.Config{Combine: true}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	handles := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
	type change = func(context.Context, repo.Key, *counted[V]) error
	add := func(_ context.Context, c *counted[V]) error { c.N++; return nil }
	plus := expression.Add(expression.Name("n"), expression.Value(1))
	in := func(call func(ctx context.Context, tx *txn.Tx) error) error { return txn.Run(ctx, call) }
	of := func(_ counted[V], err error) error { return err }
	whole := func(c *counted[V]) counted[V] { later := *c; later.N++; later.At++; return later }
	calls := map[string]change{
		"pessimistic.Update": func(ctx context.Context, key repo.Key, _ *counted[V]) error { return of(locked.Update(ctx, key, add)) },
		"pessimistic.Upsert": func(ctx context.Context, key repo.Key, _ *counted[V]) error { return of(locked.Upsert(ctx, key, add)) },
		"pessimistic.Apply":  func(ctx context.Context, key repo.Key, _ *counted[V]) error { return of(locked.Apply(ctx, key, plus)) },
		"pessimistic.Once": func(ctx context.Context, key repo.Key, _ *counted[V]) error {
			return of(locked.Once("x").Update(ctx, key, add))
		},
		"optimistic.Update": func(ctx context.Context, key repo.Key, _ *counted[V]) error { return of(free.Update(ctx, key, add)) },
		"optimistic.Apply": func(ctx context.Context, key repo.Key, _ *counted[V]) error {
			return of(free.Apply(ctx, key, plus, expression.Name("n").GreaterThanEqual(expression.Value(0))))
		},
		"optimistic.Save": func(ctx context.Context, key repo.Key, c *counted[V]) error { return of(free.Save(ctx, whole(c))) },
		"optimistic.Once": func(ctx context.Context, key repo.Key, _ *counted[V]) error {
			return of(free.Once("x").Apply(ctx, key, plus))
		},
		"no change, once": func(ctx context.Context, key repo.Key, _ *counted[V]) error {
			return of(free.Once("y").Update(ctx, key, func(context.Context, *counted[V]) error { return nil }))
		},
		"nolock.Update": func(ctx context.Context, key repo.Key, _ *counted[V]) error {
			return of(events.Update(ctx, key, func(_ context.Context, c *counted[V]) error { c.N++; c.At++; return nil }))
		},
		"nolock.Put":      func(ctx context.Context, key repo.Key, c *counted[V]) error { return events.Put(ctx, whole(c)) },
		"nolock.Apply":    func(ctx context.Context, key repo.Key, _ *counted[V]) error { return events.Apply(ctx, key, 100, plus) },
		"nolock.DeleteAt": func(ctx context.Context, key repo.Key, _ *counted[V]) error { return events.DeleteAt(ctx, key, 100) },
		"lockedread.Commit": func(ctx context.Context, key repo.Key, _ *counted[V]) error {
			held, err := handles.Acquire(ctx, key)
			if err != nil {
				return err
			}
			defer func() { _ = held.Release(ctx) }()
			c := held.Item()
			c.N++
			return of(held.Commit(ctx, c))
		},
		"pessimistic.Update in a transaction": func(_ context.Context, key repo.Key, _ *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return of(locked.In(tx).Update(ctx, key, add)) })
		},
		"optimistic.Update in a transaction": func(_ context.Context, key repo.Key, _ *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return of(free.In(tx).Update(ctx, key, add)) })
		},
		"optimistic.Apply in a transaction": func(_ context.Context, key repo.Key, _ *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return free.In(tx).Apply(ctx, key, plus) })
		},
		"optimistic.Apply of what was read": func(_ context.Context, key repo.Key, _ *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error {
				if _, err := free.In(tx).Get(ctx, key); err != nil {
					return err
				}
				return free.In(tx).Apply(ctx, key, plus)
			})
		},
		"optimistic.Save in a transaction": func(_ context.Context, key repo.Key, c *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return of(free.In(tx).Save(ctx, whole(c))) })
		},
		"nolock.Put in a transaction": func(_ context.Context, key repo.Key, c *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return events.In(tx).Put(ctx, whole(c)) })
		},
		"nolock.Apply in a transaction": func(_ context.Context, key repo.Key, _ *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return events.In(tx).Apply(ctx, key, 100, plus) })
		},
		"nolock.DeleteAt in a transaction": func(_ context.Context, key repo.Key, _ *counted[V]) error {
			return in(func(ctx context.Context, tx *txn.Tx) error { return events.In(tx).DeleteAt(ctx, key, 100) })
		},
	}
	number := func(n uint64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
	}
	item := func(name string, version uint64) (repo.Key, map[string]types.AttributeValue, *counted[V]) {
		key := repo.Key{Partition: fmt.Sprint(t.Name(), name), Sort: 1}
		raw := rig.Must(table.EncodeKey(key))(t)
		raw["n"], raw["at"], raw["version"] = number(1), number(1), number(version)
		_, err := f.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &f.Table, Item: raw})
		rig.Is(t, err)
		c := rig.Must(table.Get(ctx, key))(t)
		return key, raw, &c
	}
	for name, call := range calls {
		key, raw, c := item(name, most)
		before := f.Count.Total()
		err := call(ctx, key, c)
		if repo.VerdictOf(err) != repo.NotWritten || repo.Retryable(err) || f.Count.Total()-before > 8 {
			t.Errorf("%s: %v, after %d requests", name, err, f.Count.Total()-before)
		}
		rig.Is(t, err, repo.ErrSchema)
		now := f.Item(t, rig.Must(table.EncodeKey(key))(t))
		for attribute, was := range raw {
			if !reflect.DeepEqual(now[attribute], was) {
				t.Errorf("%s: %s is %v", name, attribute, now[attribute])
			}
		}
		if most <= math.MaxInt64 { // the one before the last is counted on
			key, _, c := item(name+" before", most-1)
			rig.Is(t, call(ctx, key, c))
			now := f.Item(t, rig.Must(table.EncodeKey(key))(t))
			if !reflect.DeepEqual(now["version"], number(most)) {
				t.Errorf("%s: from %d to %v", name, most-1, now["version"])
			}
		}
	}
	for name, r := range map[string]repo.Repository[counted[V]]{"pessimistic": combining, "optimistic": joining} {
		if most > math.MaxInt64 {
			break
		}
		key, _, _ := item(name+" combined", most-3)
		var done sync.WaitGroup
		var mu sync.Mutex
		written := 0
		for range 9 {
			done.Go(func() {
				_, err := r.Update(ctx, key, add)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					written++
				} else {
					rig.Is(t, err, repo.ErrSchema)
				}
			})
		}
		done.Wait()
		c := rig.Must(table.Get(ctx, key))(t)
		if written != 3 || c.N != 4 || uint64(c.Version) != most {
			t.Errorf("%s: %d of 9 written, %+v", name, written, c)
		}
	}
	if most <= math.MaxInt64 {
		_, _, c := item("deleted", most)
		rig.Is(t, free.Remove(ctx, *c))
	}
	key, _, _ := item("deleted", most)
	rig.Is(t, locked.Delete(ctx, key))
}
