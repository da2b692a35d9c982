package costs_test

import (
	"context"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// What a process keeps of keys that it has changed once and never again must have a
// bound: a consumer of messages sees millions of them.
func TestManyKeysLeaveNothingBehind(t *testing.T) {
	const first, more, most = 5000, 6000, 32 // bytes a key; what is bounded is by 4096 at most
	for name, open := range changers {
		t.Run(name, func(t *testing.T) {
			change := open(t)
			touch(t, change, 0, first) // what is bounded is full by then
			before, routines := heap(), runtime.NumGoroutine()
			touch(t, change, first, first+more)
			if grown := heap() - before; grown > most*more {
				t.Errorf("%d bytes are kept of each of %d keys", grown/more, more)
			}
			if now := runtime.NumGoroutine(); now > routines {
				t.Errorf("%d goroutines before, %d after", routines, now)
			}
			runtime.KeepAlive(change)
		})
	}
}

// BenchmarkManyKeys tells what is kept of a million keys.
func BenchmarkManyKeys(b *testing.B) {
	keys := 1_000_000
	if testing.Short() {
		keys = 5000
	}
	for name, open := range changers {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before, routines := heap(), runtime.NumGoroutine()
				change := open(b)
				touch(b, change, 0, keys)
				b.ReportMetric(float64(heap()-before)/1024, "KB-kept")
				b.ReportMetric(float64(runtime.NumGoroutine()-routines), "goroutines")
				runtime.KeepAlive(change)
			}
		})
	}
}

// changers change the item of a key, each in another way, over a service that answers
// from memory.
var changers = map[string]func(testing.TB) func(context.Context, string) error{
	"pessimistic, race": byLock(pessimistic.Config{Race: true}),
	"pessimistic":       byLock(pessimistic.Config{Combine: true}),
	"pessimistic, once": func(tb testing.TB) func(context.Context, string) error {
		r := rig.Must(pessimistic.New(manyTable[many](tb), pessimistic.Config{}))(tb)
		return func(ctx context.Context, id string) error {
			_, err := r.Once("op-"+id).Update(ctx, repo.Key{Partition: id}, addToMany)
			return err
		}
	},
	"optimistic":       byVersion(optimistic.Config{}),
	"optimistic, warm": byVersion(optimistic.Config{Warm: 1024, Fair: true, Combine: true}),
	"nolock": func(tb testing.TB) func(context.Context, string) error {
		r := rig.Must(nolock.New(manyTable[event](tb), nolock.Config{}))(tb)
		return func(ctx context.Context, id string) error {
			_, err := r.Update(ctx, repo.Key{Partition: id}, func(_ context.Context, e *event) error { e.N++; e.At++; return nil })
			return err
		}
	},
	"txn": func(tb testing.TB) func(context.Context, string) error {
		r := rig.Must(optimistic.New(manyTable[many](tb), optimistic.Config{}))(tb)
		return func(ctx context.Context, id string) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := r.In(tx).Update(ctx, repo.Key{Partition: id}, addToMany)
				return err
			})
		}
	},
	"mutex": func(tb testing.TB) func(context.Context, string) error {
		l := rig.Must(mutex.New(manyKeys{}, "locks", mutex.Config{Mode: mutex.FailOpen}))(tb)
		return func(ctx context.Context, id string) error {
			held, err := l.Lock(ctx, id)
			if err != nil {
				return err
			}
			return held.Unlock(ctx)
		}
	},
}

// many and event are small items.
type many struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

type event struct {
	ID string `dynamodbav:"id" repo:"pk"`
	N  int    `dynamodbav:"n"`
	At int64  `dynamodbav:"at" repo:"eventtime"`
}

func addToMany(_ context.Context, item *many) error { item.N++; return nil }

func manyTable[T any](tb testing.TB) *repo.Table[T] {
	return rig.Must(repo.NewTable[T](manyKeys{}, "items", repo.TableConfig{}))(tb)
}

func byLock(cfg pessimistic.Config) func(testing.TB) func(context.Context, string) error {
	return func(tb testing.TB) func(context.Context, string) error {
		r := rig.Must(pessimistic.New(manyTable[many](tb), cfg))(tb)
		return func(ctx context.Context, id string) error {
			_, err := r.Update(ctx, repo.Key{Partition: id}, addToMany)
			return err
		}
	}
}

func byVersion(cfg optimistic.Config) func(testing.TB) func(context.Context, string) error {
	return func(tb testing.TB) func(context.Context, string) error {
		r := rig.Must(optimistic.New(manyTable[many](tb), cfg))(tb)
		return func(ctx context.Context, id string) error {
			_, err := r.Update(ctx, repo.Key{Partition: id}, addToMany)
			return err
		}
	}
}

// touch changes the items of some keys, each once, several at a time.
func touch(tb testing.TB, change func(context.Context, string) error, from, to int) {
	const callers = 8
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := from + caller; i < to; i += callers {
				if err := change(tb.Context(), "key-"+strconv.Itoa(i)); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// manyKeys is a service in which each item is there, and free.
type manyKeys struct{ *dynamodb.Client }

func (manyKeys) item(key map[string]types.AttributeValue) map[string]types.AttributeValue {
	item := maps.Clone(key)
	for _, name := range []string{"n", "version", "at"} {
		item[name] = &types.AttributeValueMemberN{Value: "1"}
	}
	return item
}

func (s manyKeys) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: s.item(in.Key)}, nil
}

func (s manyKeys) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if in.ReturnValues != types.ReturnValueAllNew {
		return &dynamodb.UpdateItemOutput{}, nil
	}
	item, v := s.item(in.Key), in.ExpressionAttributeValues
	for name, of := range map[string]string{"lockedBy": ":me", "lockTime": ":until", "lockLease": ":lease", "lockHeld": ":floor", "lockToken": ":floor", "lockStolen": ":floor"} {
		item[name] = v[of]
	}
	return &dynamodb.UpdateItemOutput{Attributes: item}, nil
}
