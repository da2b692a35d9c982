package load

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Modes returns every mode of this library as a contender.
func Modes() []Contender {
	return []Contender{
		byEventTime("nolock", nolock.Config{}),
		byVersion("optimistic", optimistic.Config{}),
		byVersion("optimistic, warm", optimistic.Config{Warm: 1024}),
		byVersion("optimistic, combine", optimistic.Config{Combine: true}),
		byVersion("optimistic, warm, combine", optimistic.Config{Warm: 1024, Combine: true}),
		byVersion("optimistic, warm, fair", optimistic.Config{Warm: 1024, Fair: true}),
		byVersion("optimistic, warm, combine, fair", optimistic.Config{Warm: 1024, Combine: true, Fair: true}),
		byLock("pessimistic, race", pessimistic.Config{Race: true}),
		byLock("pessimistic, combine, race", pessimistic.Config{Combine: true, Race: true}),
		byLock("pessimistic", pessimistic.Config{}),
		byLock("pessimistic, combine", pessimistic.Config{Combine: true}),
	}
}

// ShortSleeps is optimistic with sleeps that are so short that conflicts are answered at once
// behind each of them.
func ShortSleeps() Contender {
	return byVersion("optimistic, short sleeps", optimistic.Config{Wait: repo.Wait{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}})
}

// versioned is the item for the strategies with a version; the pessimistic one
// needs none, but takes part in it where the type has one.
type versioned struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	Padding string `dynamodbav:"padding"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// timed is the item for the strategy with an event time.
type timed struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	Padding string `dynamodbav:"padding"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
}

func byVersion(name string, cfg optimistic.Config) Contender {
	return mode(name, func(t *repo.Table[versioned]) (repo.Repository[versioned], error) { return optimistic.New(t, cfg) },
		func(item *versioned) { item.N++ })
}

func byLock(name string, cfg pessimistic.Config) Contender {
	return mode(name, func(t *repo.Table[versioned]) (repo.Repository[versioned], error) { return pessimistic.New(t, cfg) },
		func(item *versioned) { item.N++ })
}

// byEventTime counts by Update: a counter is no event that carries its value,
// so the one-request writes do not fit it.
func byEventTime(name string, cfg nolock.Config) Contender {
	c := mode(name, func(t *repo.Table[timed]) (repo.Repository[timed], error) { return nolock.New(t, cfg) },
		func(item *timed) { item.N++; item.At++ })
	c.Prepare = func(item map[string]any) { item["at"] = 1 }
	return c
}

func mode[T any](name string, open func(*repo.Table[T]) (repo.Repository[T], error), add func(*T)) Contender {
	return Ours(name, open, func(r repo.Repository[T]) Change {
		return func(ctx context.Context, items []Touched, inside func(context.Context)) error {
			_, err := r.Update(ctx, repo.Key{Partition: items[0].ID}, func(ctx context.Context, item *T) error {
				add(item)
				inside(ctx)
				return nil
			})
			return err
		}
	})
}

// Ours is a contender of this library: what open makes of the table, and a change by it.
func Ours[T, R any](name string, open func(*repo.Table[T]) (R, error), change func(R) Change) Contender {
	return Contender{
		Name: name,
		Open: func(_ context.Context, client *dynamodb.Client, table string) (Change, error) {
			t, err := repo.NewTable[T](client, table, repo.TableConfig{})
			if err != nil {
				return nil, err
			}
			r, err := open(t)
			if err != nil {
				return nil, err
			}
			return change(r), nil
		},
		Unknown: func(err error) bool { return errors.Is(err, repo.ErrOutcomeUnknown) },
	}
}
