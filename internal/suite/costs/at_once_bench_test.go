package costs_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// What a locked change costs the processor when many are under way at once, each of a
// goroutine of its own, against the same requests by hand with as many goroutines. The
// service answers from memory, after 4 ms: all of them are then really under way, with
// their stacks, timers and contexts. Both sides run in turn, in blocks that end with
// the garbage collector's work for them.
//
// On items of their own, the metrics are microseconds of the processor for a change of
// either side, and the ratio. On one item there is nothing to compare with: who writes
// the requests by hand has no line. The service then answers at once, so that the
// callers wait for each other alone.
func BenchmarkCallsAtOnce(b *testing.B) {
	counts, calls := []int{1, 100, 1_000, 10_000}, 20_000
	if testing.Short() {
		counts, calls = []int{1, 100}, 200
	}
	for _, callers := range counts {
		latency := 4 * time.Millisecond
		if callers == 1 {
			latency = 0 // a machine with nothing to do would go to sleep at each request
		}
		own := newAtOnce(b, latency, callers)
		b.Run(fmt.Sprintf("own items, %d callers", callers), func(b *testing.B) {
			var byHand, ours, ratio []float64
			for b.Loop() {
				x := own.time(b, callers, calls, own.byHand)
				y := own.time(b, callers, calls, own.change)
				byHand, ours, ratio = append(byHand, x), append(ours, y), append(ratio, y/x)
			}
			b.ReportMetric(median(byHand), "by-hand-µs")
			b.ReportMetric(median(ours), "dynahold-µs")
			b.ReportMetric(median(ratio), "x-same-requests")
		})
		one := newAtOnce(b, 0, callers)
		b.Run(fmt.Sprintf("one item, %d callers", callers), func(b *testing.B) {
			var ours []float64
			for b.Loop() {
				ours = append(ours, one.time(b, callers, calls, func(ctx context.Context, _ int) error { return one.change(ctx, 0) }))
			}
			b.ReportMetric(median(ours), "dynahold-µs")
		})
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// atOnce is a repository, and the requests that it sends, over a service that answers
// from memory.
type atOnce struct {
	client *dynamodb.Client
	r      *pessimistic.Repository[product]
	sent   []dynamodb.UpdateItemInput
	keys   []string
}

func newAtOnce(b *testing.B, latency time.Duration, keys int) *atOnce {
	a := &atOnce{client: dynamodb.New(fromMemory(b).Options(), func(o *dynamodb.Options) { o.HTTPClient = late{o.HTTPClient, latency} })}
	seen := &recorder{Client: fromMemory(b)}
	open := func(client repo.Client) *pessimistic.Repository[product] {
		// A busy machine takes its time for ten thousand of them.
		table, err := repo.NewTable[product](client, "table", repo.TableConfig{AttemptTimeout: 10 * time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		r, err := pessimistic.New(table, pessimistic.Config{Lease: 20 * time.Minute, Race: true})
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	for i := range keys {
		a.keys = append(a.keys, "apple-"+strconv.Itoa(i))
	}
	a.r = open(seen)
	if err := a.change(b.Context(), 0); err != nil || len(seen.sent) != 2 {
		b.Fatalf("%d requests, %v", len(seen.sent), err)
	}
	a.r, a.sent = open(a.client), seen.sent
	return a
}

func (a *atOnce) change(ctx context.Context, caller int) error {
	_, err := a.r.Update(ctx, repo.Key{Partition: a.keys[caller]}, func(_ context.Context, p *product) error { p.Stock--; return nil })
	return err
}

func (a *atOnce) byHand(ctx context.Context, _ int) error {
	return sameRequestsByHand(ctx, a.client, a.sent)
}

// time is what a call takes of the processor, in microseconds, when so many callers
// share so many calls.
func (a *atOnce) time(b *testing.B, callers, calls int, do func(context.Context, int) error) float64 {
	runtime.GC()
	began := processorTime(b)
	var left atomic.Int64
	left.Store(int64(calls))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(b.Context(), caller); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	runtime.GC()
	return float64((processorTime(b) - began).Microseconds()) / float64(calls)
}

// late answers after a while.
type late struct {
	dynamodb.HTTPClient
	by time.Duration
}

func (l late) Do(req *http.Request) (*http.Response, error) {
	if l.by > 0 {
		time.Sleep(l.by)
	}
	return l.HTTPClient.Do(req)
}
