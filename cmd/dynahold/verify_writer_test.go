package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/history"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// writer is a process that writes the orders in all ways.
type writer struct {
	client       *dynamodb.Client
	versions     repo.Repository[order]
	transactions txn.Config
	direct       *optimistic.Repository[order]
	locks        *pessimistic.Repository[order]
	holds        *lockedread.Locker[order]
	random       *mathrand.Rand
	// expressions are sent by a network that makes no copies at all. One that has missed its
	// item would find the next one (limits.md).
	expressions *optimistic.Repository[order]
}

// broken is a client of the engine, a share of whose requests is broken, but in these ways.
// The second answer to a request, behind a deletion, would be believed (limits.md).
func (n *night) broken(seed uint64, rate float64, record *history.Recorder, but ...fault.Kind) *dynamodb.Client {
	o := n.client.Options()
	kinds := slices.DeleteFunc(fault.AllKinds(), func(k fault.Kind) bool { return k == fault.Resend || slices.Contains(but, k) })
	o.HTTPClient = fault.New(o.HTTPClient.(fault.Doer), fault.Config{Seed: seed, Rate: rate, MaxDelay: 2 * time.Millisecond, Kinds: kinds})
	return dynamodb.New(o, record.Watch)
}

func (n *night) writer(seed uint64, rate float64, record *history.Recorder) *writer {
	n.Helper()
	w := &writer{client: n.broken(seed, rate, record), random: mathrand.New(mathrand.NewPCG(seed, 1))}
	cfg := repo.TableConfig{AttemptTimeout: time.Second, TracerProvider: record.Tracing(nil)}
	table, err := repo.NewTable[order](w.client, "orders", cfg)
	n.is(err)
	single, err := repo.NewTable[order](n.broken(seed, rate, record, fault.LateDuplicate), "orders", cfg)
	n.is(err)
	w.expressions, err = optimistic.New(single, optimistic.Config{})
	n.is(err)
	w.direct, err = optimistic.New(table, optimistic.Config{Combine: seed%2 == 0, Warm: int(seed % 3), Fair: seed%3 == 0})
	n.is(err)
	w.locks, err = pessimistic.New(table, pessimistic.Config{Lease: 3 * time.Second, Race: seed%2 == 0})
	n.is(err)
	w.holds, err = lockedread.New(table, lockedread.Config{Lease: 3 * time.Second})
	n.is(err)
	w.versions, w.transactions = w.direct, txn.Config{TracerProvider: record.Tracing(nil)}
	return w
}

// write makes one change of some kind. What comes of it is not asked: the stream tells.
func (w *writer) write(ctx context.Context) {
	key := repo.Key{Partition: fmt.Sprint("item-", w.random.IntN(3))}
	add := func(_ context.Context, o *order) error { o.Total++; return nil }
	switch w.random.IntN(10) {
	case 0:
		_, _ = w.versions.Upsert(ctx, key, add)
	case 1:
		_, _ = w.locks.Upsert(ctx, key, add)
	case 2:
		_, _ = w.expressions.Once(fmt.Sprint(w.random.Uint64())).Apply(ctx, key, expression.Add(expression.Name("total"), expression.Value(1)))
	case 3:
		_, _ = w.direct.Once(fmt.Sprint(w.random.Uint64())).Update(ctx, key, add)
	case 4:
		other := repo.Key{Partition: fmt.Sprint("item-", w.random.IntN(3))}
		_ = w.transactions.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			_, err := w.direct.In(tx).Update(ctx, key, add)
			if other != key && err == nil {
				_, err = w.locks.In(tx).Update(ctx, other, add)
			}
			return err
		})
	case 5:
		if held, err := w.holds.Acquire(ctx, key); err == nil {
			_ = held.Release(ctx)
		}
	case 6:
		if held, err := w.holds.Acquire(ctx, key); err == nil {
			o := held.Item()
			o.Total++
			_, _ = held.Commit(ctx, o)
		}
	case 7:
		if w.random.IntN(8) == 0 {
			_, _ = w.direct.Update(ctx, key, func(context.Context, *order) error { return repo.Remove })
		}
	default:
		_, _ = w.direct.Update(ctx, key, add)
	}
}

// recorded is the history of a few processes over a network that breaks, with a hold that
// ends with its lease, and one that stands; and what they have written down of it.
func recorded(t *testing.T) (n *night, calls string) {
	t.Helper()
	n = streamed(t, types.StreamViewTypeNewAndOldImages)
	var lines bytes.Buffer
	record := history.New(&lines, history.Config{})
	last := n.writer(7, 0, record)
	for _, id := range []string{"free", "item-0"} {
		_, err := last.direct.Create(t.Context(), order{ID: id})
		n.is(err)
	}
	_, err := last.holds.Acquire(t.Context(), repo.Key{Partition: "item-0"}) // who wants it waits for seconds
	n.is(err)
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			w := n.writer(seed, 0.1, record)
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				w.write(ctx)
				cancel()
			}
		})
	}
	all.Wait()
	for _, id := range []string{"left", "held", "free"} {
		key := repo.Key{Partition: id}
		for range 12 {
			_, err := last.direct.Once(rand.Text()).Upsert(t.Context(), key, func(_ context.Context, o *order) error { o.Total++; return nil })
			n.is(err)
		}
		if id == "free" {
			continue
		}
		holder := last.holds
		if id == "held" {
			holder = n.items("till", 0, false) // for a minute
		}
		_, err := holder.Acquire(t.Context(), key)
		n.is(err)
	}
	_, err = last.direct.Update(t.Context(), repo.Key{Partition: "left"}, func(_ context.Context, o *order) error { o.Total++; return nil })
	n.is(err) // it has waited for the lease to end
	n.is(record.Close())
	return n, lines.String()
}
