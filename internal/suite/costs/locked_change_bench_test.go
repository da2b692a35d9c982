package costs_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/direct"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// product has ten fields, as an item of a shop might.
type product struct {
	ID       string   `dynamodbav:"id" repo:"pk"`
	Name     string   `dynamodbav:"name"`
	Stock    int      `dynamodbav:"stock"`
	Reserved int      `dynamodbav:"reserved"`
	Price    int      `dynamodbav:"price"`
	Shelf    string   `dynamodbav:"shelf"`
	Tags     []string `dynamodbav:"tags"`
	Active   bool     `dynamodbav:"active"`
	Updated  int64    `dynamodbav:"updated"`
	Note     string   `dynamodbav:"note"`
}

var sample = product{"apple", "Apple", 100, 3, 129, "A-17", []string{"fruit", "fresh"}, true, 1700000000, "keep cool"}

// BenchmarkLockedChange compares a locked change with two requests written by hand:
// with the shortest texts, and with the texts of the library, whose conditions ask for
// more and which send names beside the texts. The library is measured with the SDK's
// client, and with that of package direct. All sides
// run in turn, in blocks that end with the garbage collector's work for them, and are
// compared by the processor's time, so that the ratio holds on a noisy machine.
//
// What all of them share is measured with them: the bytes of the requests by hand, sent
// by the HTTP client alone. And the connections are counted that a side opens for
// another change, having lost the one before.
func BenchmarkLockedChange(b *testing.B) {
	for _, n := range networks(b) {
		b.Run(n.name, func(b *testing.B) { lockedChange(b, n) })
	}
}

func lockedChange(b *testing.B, n *network) {
	seen := &recorder{Client: n.client}
	rig.Is(b, change(b, seen)())
	wire := &recordedWire{HTTPClient: n.client.Options().HTTPClient}
	rig.Is(b, lockedChangeByHand(b.Context(), dynamodb.New(n.client.Options(), func(o *dynamodb.Options) { o.HTTPClient = wire })))
	sides := []struct {
		name string
		do   func() error
	}{
		{"by-hand", func() error { return lockedChangeByHand(b.Context(), n.client) }},
		{"same-requests", func() error { return sameRequestsByHand(b.Context(), n.client, seen.sent) }},
		{"dynahold", change(b, n.client)},
		{"direct", change(b, rig.Must(direct.Client(n.client))(b))},
		{"wire", func() error { return wire.again(b.Context()) }},
	}
	for _, side := range sides {
		b.Run(side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := side.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("ratio", func(b *testing.B) {
		const changes = 300         // of a block
		var spent [5][]float64      // of each side, by block
		var dials [len(spent)]int64 // of each side
		for b.Loop() {
			for i, side := range sides {
				runtime.GC()
				before, began := n.dials.Load(), processorTime(b)
				for range changes {
					if err := side.do(); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				spent[i] = append(spent[i], float64(processorTime(b)-began))
				dials[i] += n.dials.Load() - before
			}
		}
		ratio := func(of, to int) float64 {
			all := make([]float64, len(spent[of]))
			for i := range all {
				all[i] = spent[of][i] / spent[to][i]
			}
			return median(all)
		}
		b.ReportMetric(ratio(2, 0), "x-by-hand")
		b.ReportMetric(ratio(2, 1), "x-same-requests")
		b.ReportMetric(ratio(3, 0), "direct-x-by-hand")
		b.ReportMetric(ratio(3, 1), "direct-x-same-requests")
		b.ReportMetric(ratio(4, 0), "wire-x-by-hand")
		for i, name := range []string{"by-hand", "same-requests", "dynahold", "direct"} {
			b.ReportMetric(100*float64(dials[i])/float64(changes*len(spent[i])), name+"-dials-%")
		}
	})
}

// BenchmarkOptimisticChange is a change without a lock, from memory. In its profile
// stands what a write spends on being looked for by its process (witness.go).
func BenchmarkOptimisticChange(b *testing.B) {
	type versioned struct {
		product
		Version int64 `dynamodbav:"version" repo:"version"`
	}
	table := rig.Must(repo.NewTable[versioned](fromMemory(b), "table", repo.TableConfig{}))(b)
	r := rig.Must(optimistic.New(table, optimistic.Config{}))(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Update(b.Context(), repo.Key{Partition: "apple"}, func(_ context.Context, v *versioned) error { v.Stock--; return nil })
		rig.Is(b, err)
	}
}

// change is the library's locked change with a client. What answers from memory knows no
// queue; alone a change is two requests with one and without.
func change(b *testing.B, client repo.Client) func() error {
	table := rig.Must(repo.NewTable[product](client, "table", repo.TableConfig{}))(b)
	r := rig.Must(pessimistic.New(table, pessimistic.Config{Race: true}))(b)
	return func() error {
		_, err := r.Update(b.Context(), repo.Key{Partition: "apple"}, func(_ context.Context, p *product) error { p.Stock--; return nil })
		return err
	}
}
