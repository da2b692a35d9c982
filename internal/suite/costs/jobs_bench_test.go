package costs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// Jobs at scale, in virtual time: a request takes 4 ms, and transactions that meet on
// an item are refused.
func BenchmarkJobsAtScale(b *testing.B) {
	const work = 20 * time.Millisecond
	for _, queued := range []int{1, 100, 10_000, 100_000} {
		for _, limit := range []int{1, 100} {
			inFleet(b, fmt.Sprintf("Next of %d queued, limit %d", queued, limit), func(f *fleet, report func(float64, string)) {
				f.next(queued, limit, report)
			})
		}
	}
	for _, resources := range []int{100, 1000} {
		inFleet(b, fmt.Sprintf("one of %d resources has room", resources), func(f *fleet, report func(float64, string)) { f.full(resources, report) })
	}
	for _, dispatchers := range []int{1, 8, 50} {
		inEveryWorld(b, fmt.Sprintf("1000 jobs, 100 resources, %d processes of 1", dispatchers), func(f *fleet, report func(float64, string)) {
			f.drain(100, 1000, 1, dispatchers, 1, work, report)
		})
	}
	for _, dispatchers := range []int{1, 8, 50} {
		inEveryWorld(b, fmt.Sprintf("400 jobs, 1 resource, limit 8, %d processes of 1", dispatchers), func(f *fleet, report func(float64, string)) {
			f.drain(1, 400, 8, dispatchers, 1, work, report)
		})
	}
	for _, limit := range []int{1, 2, 8, 64} {
		inEveryWorld(b, fmt.Sprintf("1 resource, 8 processes of 8, limit %d", limit), func(f *fleet, report func(float64, string)) {
			f.drain(1, 200+60*limit, limit, 8, 8, work, report)
		})
	}
	inEveryWorld(b, "10000 jobs, 100 resources, 10 processes of 5", func(f *fleet, report func(float64, string)) {
		f.drain(100, 10_000, 1, 10, 5, work, report)
	})
	inFleet(b, "200 jobs a second of another process, 100 resources, 10 processes of 5", func(f *fleet, report func(float64, string)) {
		f.flow(100, 1000, 5*time.Millisecond, 10, 5, work, report)
	})
	inFleet(b, "1 job a second of another process, 100 resources, 10 processes of 5", func(f *fleet, report func(float64, string)) {
		f.flow(100, 60, time.Second, 10, 5, work, report)
	})
	for _, resources := range []int{0, 100, 1000} {
		for _, dispatchers := range []int{1, 50} {
			inFleet(b, fmt.Sprintf("%d idle dispatchers, %d resources", dispatchers, resources), func(f *fleet, report func(float64, string)) {
				f.idle(resources, dispatchers, report)
			})
		}
	}
	inFleet(b, "enqueue of 300 jobs, 1 resource, 1 caller", func(f *fleet, report func(float64, string)) { f.enqueue(300, 1, report) })
	inFleet(b, "enqueue of 300 jobs, 1 resource, 32 callers", func(f *fleet, report func(float64, string)) { f.enqueue(300, 32, report) })
}

// next measures Next alone, and beside it the end of each job.
func (f *fleet) next(queued, limit int, report func(float64, string)) {
	const count = 20
	f.backlog("r", queued+count, limit)
	s, ctx := f.process(jobs.Config{}), f.t.Context()
	var requests, reads, writes int64
	for range count {
		f.begin()
		j := rig.Must(s.Next(ctx, "r"))(f.t)
		requests, reads, writes = requests+f.sent.Load(), reads+f.reads.Load(), writes+f.writes.Load()
		rig.Is(f.t, j.Done(ctx))
	}
	report(float64(requests)/count, "requests/Next")
	report(float64(reads)/10/count, "RU/Next")
	report(float64(writes)/10/count, "WU/Next")
}

// full measures a dispatcher that comes to resources of which one has room: the others
// are at their limit, with jobs of others that are renewed in time.
func (f *fleet) full(resources int, report func(float64, string)) {
	until := time.Now().Add(time.Hour).Unix()
	for i := range resources - 1 {
		f.put(fmt.Sprint("full-", i), 20, attrs{"queued": num(19), "running": num(1), "limit": num(1), "token": num(time.Now().UnixMicro())}, func(i int) attrs {
			if i > 0 {
				return attrs{"state": str("queued"), "attempts": num(0)}
			}
			return attrs{"state": str("running"), "attempts": num(1), "token": num(1), "until": num(until), "owner": str("other")}
		})
	}
	f.backlog("room", 1, 1)
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	f.begin()
	began := time.Now()
	rig.Is(f.t, f.process(jobs.Config{}).Run(ctx, func(context.Context, *jobs.Job[int]) error {
		report(float64(f.sent.Load()), "requests-until-start")
		report(float64(time.Since(began).Milliseconds()), "ms-until-start")
		return nil
	}))
	f.per(1, "min", report)
}

// run runs dispatchers in processes of their own until so many jobs are done.
func (f *fleet) run(processes, workers, count int, work time.Duration, started func(j *jobs.Job[int])) {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Hour)
	defer cancel()
	var done atomic.Int64
	var all sync.WaitGroup
	for range processes {
		s := f.process(jobs.Config{Workers: workers})
		all.Go(func() {
			rig.Is(f.t, s.Run(ctx, func(_ context.Context, j *jobs.Job[int]) error {
				started(j)
				time.Sleep(work)
				if done.Add(1) == int64(count) {
					cancel()
				}
				return nil
			}))
		})
	}
	all.Wait()
	if done.Load() != int64(count) {
		f.t.Errorf("%d jobs of %d done", done.Load(), count)
	}
}

// drain measures a backlog.
func (f *fleet) drain(resources, count, limit, processes, workers int, work time.Duration, report func(float64, string)) {
	for i := range resources {
		f.backlog(fmt.Sprint("r", i), count/resources, limit)
	}
	f.begin()
	began := time.Now()
	f.run(processes, workers, count/resources*resources, work, func(*jobs.Job[int]) {})
	report(float64(count)/time.Since(began).Seconds(), "jobs/s")
	f.per(float64(count), "job", report)
}

// flow measures jobs that another process enqueues, one at a time, and how long each
// waits for its start.
func (f *fleet) flow(resources, count int, every time.Duration, processes, workers int, work time.Duration, report func(float64, string)) {
	producer := f.process(jobs.Config{})
	at := make([]time.Time, count)
	waits := make([]time.Duration, count)
	var all sync.WaitGroup
	all.Go(func() {
		time.Sleep(30 * time.Second) // the dispatchers are idle
		f.begin()
		for i := range count {
			time.Sleep(every)
			all.Go(func() {
				at[i] = time.Now()
				rig.Must(producer.Enqueue(f.t.Context(), fmt.Sprint("r", i%resources), i))(f.t)
			})
		}
	})
	f.run(processes, workers, count, work, func(j *jobs.Job[int]) { waits[j.Value()] = time.Since(at[j.Value()]) })
	all.Wait()
	f.per(float64(count), "job", report)
	report(percentile(waits, 50), "p50-ms")
	report(percentile(waits, 99), "p99-ms")
}

// idle measures dispatchers without work, and how long a job of another process then
// waits for its start.
func (f *fleet) idle(resources, dispatchers int, report func(float64, string)) {
	for i := range resources {
		f.backlog(fmt.Sprint("r", i), 0, 1)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	started := make(chan struct{})
	var all sync.WaitGroup
	for range dispatchers {
		s := f.process(jobs.Config{})
		all.Go(func() {
			rig.Is(f.t, s.Run(ctx, func(context.Context, *jobs.Job[int]) error {
				started <- struct{}{}
				return nil
			}))
		})
	}
	time.Sleep(time.Minute)
	f.begin()
	time.Sleep(5 * time.Minute)
	f.per(5*float64(dispatchers), "min", report)
	producer := f.process(jobs.Config{})
	var waits []time.Duration
	for i := range 20 {
		time.Sleep(time.Minute + time.Duration(i)*100*time.Millisecond)
		began := time.Now()
		rig.Must(producer.Enqueue(ctx, fmt.Sprint("r", i), i))(f.t)
		<-started
		waits = append(waits, time.Since(began))
	}
	report(percentile(waits, 50), "p50-ms")
	report(percentile(waits, 100), "max-ms")
	cancel()
	all.Wait()
}

// enqueue measures callers of one process that enqueue jobs of one resource.
func (f *fleet) enqueue(count, callers int, report func(float64, string)) {
	s := f.process(jobs.Config{})
	began := time.Now()
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < count; i += callers {
				rig.Must(s.Enqueue(f.t.Context(), "r", i))(f.t)
			}
		})
	}
	all.Wait()
	report(float64(count)/time.Since(began).Seconds(), "jobs/s")
	f.per(float64(count), "job", report)
}
