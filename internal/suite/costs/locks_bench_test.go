package costs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// A free lock and its release, for every kind, with the requests that it takes.
func BenchmarkLockAndRelease(b *testing.B) {
	for _, l := range fixture.Locks() {
		b.Run(l.Name, func(b *testing.B) {
			w := fixture.NewForLock(b, l.Name)
			x := l.Open(b, w, w.Client, 30*time.Second)
			ctx := context.Background()
			for b.Loop() {
				g, err := x.Try(ctx)
				if err != nil {
					b.Fatal(err)
				}
				if err := g.Release(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w.Count.Total())/float64(b.N), "requests/op")
		})
	}
}

// What waiting costs: waiters behind one holder, each as a process of its own
// would wait. The metric is requests per second and waiter.
func BenchmarkWaiting(b *testing.B) {
	for _, l := range fixture.Locks() {
		for _, waiters := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("%s, %d waiters", l.Name, waiters), func(b *testing.B) {
				w := fixture.NewForLock(b, l.Name)
				holder, err := l.Open(b, w, w.Client, 30*time.Second).Try(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				span := 3 * time.Second
				if testing.Short() {
					span /= 10
				}
				requests := 0.0
				for b.Loop() {
					ctx, cancel := context.WithTimeout(context.Background(), span)
					w.Count.Reset()
					var all sync.WaitGroup
					for range waiters {
						x := l.Open(b, w, w.Client, 30*time.Second)
						all.Go(func() {
							if _, err := x.Lock(ctx); !errors.Is(err, repo.ErrLocked) && !errors.Is(err, context.DeadlineExceeded) {
								b.Errorf("waiting ended with %v", err)
							}
						})
					}
					all.Wait()
					cancel()
					requests += float64(w.Count.Total())
				}
				b.ReportMetric(requests/float64(b.N)/span.Seconds()/float64(waiters), "requests/s/waiter")
				if err := holder.Release(context.Background()); err != nil {
					b.Error(err)
				}
			})
		}
	}
}

// Callers of one process that want the same lock again and again, each for 20 ms: requests
// for a lock and its release, and how long a caller waits.
func BenchmarkCallersOfOneProcess(b *testing.B) {
	const callers, work = 8, 20 * time.Millisecond
	for _, l := range fixture.Locks() {
		b.Run(l.Name, func(b *testing.B) {
			w := fixture.NewForLock(b, l.Name)
			x := l.Open(b, w, w.Client, 30*time.Second)
			w.Count.Reset()
			var left atomic.Int64
			left.Store(int64(b.N))
			waits := make([][]time.Duration, callers)
			var all sync.WaitGroup
			b.ResetTimer()
			for i := range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						began := time.Now()
						held, err := x.Lock(context.Background())
						if err != nil {
							b.Error(err)
							return
						}
						waits[i] = append(waits[i], time.Since(began))
						time.Sleep(work)
						if err := held.Release(context.Background()); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			sorted := slices.Sorted(slices.Values(slices.Concat(waits...)))
			b.ReportMetric(float64(w.Count.Total())/float64(b.N), "requests/lock")
			b.ReportMetric(float64(sorted[len(sorted)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(sorted[len(sorted)*99/100].Milliseconds()), "p99-ms")
		})
	}
}

// Jobs through one table with 8 workers, from Enqueue to Done; the time is that
// of the work alone, since the jobs are enqueued before it starts.
func BenchmarkJobs(b *testing.B) {
	for _, resources := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("%d resources", resources), func(b *testing.B) {
			w := fixture.NewForLock(b, "permit, limit 1")
			client := &billed{Client: rig.Client()}
			s := rig.Must(jobs.New[int](client, w.Table, jobs.Config{Workers: 8}))(b)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for i := range b.N {
				if _, err := s.Enqueue(ctx, fmt.Sprint("r", i%resources), i); err != nil {
					b.Fatal(err)
				}
			}
			var done atomic.Int64
			b.ResetTimer()
			err := s.Run(ctx, func(context.Context, *jobs.Job[int]) error {
				if done.Add(1) == int64(b.N) {
					cancel()
				}
				return nil
			})
			b.StopTimer()
			if err != nil || done.Load() != int64(b.N) {
				b.Fatalf("%d jobs of %d done: %v", done.Load(), b.N, err)
			}
			n := float64(b.N)
			b.ReportMetric(n/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(client.requests.Load())/n, "requests/job")
			b.ReportMetric(float64(client.writes.Load())/10/n, "WU/job")
			b.ReportMetric(float64(client.reads.Load())/10/n, "RU/job")
		})
	}
}
