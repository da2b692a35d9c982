package costs_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// What jobs that wait for their time cost those of today, and what they cost when it has
// come, in virtual time as in JobsAtScale.
func BenchmarkJobsLater(b *testing.B) {
	for _, later := range []int{0, 10_000, 1_000_000} {
		inEveryWorld(b, fmt.Sprintf("1 job a second, %d due tomorrow", later), func(f *fleet, report func(float64, string)) {
			f.tomorrow(100, later)
			f.flow(100, 200, time.Second, 10, 5, 20*time.Millisecond, report)
		})
	}
	for _, dispatchers := range []int{8, 50} {
		for _, later := range []int{0, 10_000} {
			inFleet(b, fmt.Sprintf("1000 jobs, %d processes, %d due tomorrow", dispatchers, later), func(f *fleet, report func(float64, string)) {
				f.tomorrow(100, later)
				f.drain(100, 1000, 1, dispatchers, 1, 20*time.Millisecond, report)
			})
		}
	}
	for _, retries := range []int{0, 1, 300} {
		inFleet(b, fmt.Sprintf("40 jobs, %d wait for their retry", retries), func(f *fleet, report func(float64, string)) {
			f.retries(retries, 40, report)
		})
	}
	for _, dispatchers := range []int{1, 8, 50} {
		inEveryWorld(b, fmt.Sprintf("1 job a second, each at its time, %d processes", dispatchers), func(f *fleet, report func(float64, string)) {
			f.timed(200, dispatchers, report)
		})
	}
}

// tomorrow puts jobs into the table, past the queue, that wait for tomorrow.
func (f *fleet) tomorrow(resources, count int) {
	at := time.Now().Add(24 * time.Hour).UnixMicro()
	rows := make(chan []types.WriteRequest)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for batch := range rows {
				rig.Must(f.setup.BatchWriteItem(f.t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{f.table: batch}}))(f.t)
			}
		})
	}
	var batch []types.WriteRequest
	for i := range count {
		name, place := fmt.Sprint("r", i%resources), fmt.Sprintf("%015x-AAAAAAAAAAAAA", at+int64(i))
		item := attrs{"pk": str("LATER#" + shardOf(name)), "sk": str(place), "id": str(place), "job": str("1"), "attempts": num(0), "resource": str(name)}
		if batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}}); len(batch) == 25 || i == count-1 {
			rows <- batch
			batch = nil
		}
	}
	close(rows)
	all.Wait()
	f.later = count / resources
	for i := range resources {
		f.backlog(fmt.Sprint("r", i), 0, 1)
	}
}

func shardOf(resource string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(resource))
	return fmt.Sprintf("%x", hash.Sum32()%16)
}

// retries measures jobs of a resource of which others have failed.
func (f *fleet) retries(failed, count int, report func(float64, string)) {
	hour := jobs.Retry{Min: time.Hour, Max: time.Hour}
	producer, ctx := f.process(jobs.Config{Limit: 8, Retry: hour}), f.t.Context()
	for i := range failed {
		rig.Must(producer.Enqueue(ctx, "r", -i))(f.t)
		rig.Is(f.t, rig.Must(producer.Next(ctx, "r"))(f.t).Fail(ctx, errors.New("no")))
	}
	time.Sleep(time.Minute) // marks of then are over
	rig.Must(producer.EnqueueMany(ctx, "r", make([]int, count)))(f.t)
	f.begin()
	f.run(1, 8, count, 20*time.Millisecond, func(*jobs.Job[int]) {})
	f.per(float64(count), "job", report)
}

// timed measures jobs that another process has enqueued for a time, one a second.
func (f *fleet) timed(count, dispatchers int, report func(float64, string)) {
	producer, ctx := f.process(jobs.Config{}), f.t.Context()
	first := time.Now().Add(time.Minute)
	at := func(i int) time.Time { return first.Add(time.Duration(i) * time.Second) }
	for i := range count {
		rig.Must(producer.Enqueue(ctx, fmt.Sprint("r", i%100), i, jobs.At(at(i))))(f.t)
	}
	waits := make([]time.Duration, count)
	var begun atomic.Bool
	f.run(dispatchers, 1, count, 20*time.Millisecond, func(j *jobs.Job[int]) {
		if !begun.Swap(true) {
			f.begin()
		}
		waits[j.Value()] = time.Since(at(j.Value()))
	})
	f.per(float64(count), "job", report)
	report(percentile(waits, 50), "p50-ms")
	report(percentile(waits, 100), "max-ms")
}

// What each step of a job costs, where it meets no other: the transaction's rows at two
// write units each.
func BenchmarkJobSteps(b *testing.B) {
	steps := func(name string, cfg jobs.Config, options []jobs.Option, end func(ctx context.Context, j *jobs.Job[int]) error) {
		inFleet(b, name, func(f *fleet, report func(float64, string)) { f.steps(cfg, options, end, report) })
	}
	done := func(ctx context.Context, j *jobs.Job[int]) error { return j.Done(ctx) }
	steps("Done", jobs.Config{}, nil, done)
	steps("Done, WithID", jobs.Config{}, []jobs.Option{jobs.WithID("mine")}, done)
	steps("Done, Unique", jobs.Config{}, []jobs.Option{jobs.Unique("mine")}, done)
	steps("Done, Keep", jobs.Config{}, []jobs.Option{jobs.Keep(time.Hour)}, done)
	steps("Done, Priority", jobs.Config{}, []jobs.Option{jobs.Priority(1)}, done)
	steps("Done, After", jobs.Config{}, []jobs.Option{jobs.After(time.Minute)}, done)
	steps("Fail", jobs.Config{}, nil, func(ctx context.Context, j *jobs.Job[int]) error { return j.Fail(ctx, errors.New("no")) })
	steps("Snooze", jobs.Config{}, nil, func(ctx context.Context, j *jobs.Job[int]) error { return j.Snooze(ctx, time.Hour) })
	for _, limit := range []int{1, 8, 64} {
		inFleet(b, fmt.Sprintf("enqueued and ended together, limit %d", limit), func(f *fleet, report func(float64, string)) { f.together(limit, report) })
	}
}

// steps measures one job of one process.
func (f *fleet) steps(cfg jobs.Config, options []jobs.Option, end func(context.Context, *jobs.Job[int]) error, report func(float64, string)) {
	q, ctx := f.process(cfg), f.t.Context()
	rig.Must(q.Enqueue(ctx, "r", 0))(f.t) // which writes the wake-up row
	rig.Is(f.t, rig.Must(q.Next(ctx, "r"))(f.t).Done(ctx))
	step := func(name string, do func()) {
		f.begin()
		do()
		report(float64(f.sent.Load()), name+"-requests")
		report(float64(f.writes.Load())/10, name+"-WU")
		report(float64(f.reads.Load())/10, name+"-RU")
	}
	step("enqueue", func() { rig.Must(q.Enqueue(ctx, "r", 1, options...))(f.t) })
	var j *jobs.Job[int]
	if len(options) > 0 {
		time.Sleep(time.Minute) // the time of one that has one
	}
	step("start", func() { j = rig.Must(q.Next(ctx, "r"))(f.t) })
	step("end", func() { rig.Is(f.t, end(ctx, j)) })
}

// together measures jobs of one resource that are enqueued together, and handled by one
// process.
func (f *fleet) together(limit int, report func(float64, string)) {
	const count = 256
	q := f.process(jobs.Config{Limit: limit})
	f.begin()
	rig.Must(q.EnqueueMany(f.t.Context(), "r", make([]int, count)))(f.t)
	report(float64(f.sent.Load())/count, "enqueue-requests")
	report(float64(f.writes.Load())/10/count, "enqueue-WU")
	f.begin()
	f.run(1, 64, count, 20*time.Millisecond, func(*jobs.Job[int]) {})
	f.per(count, "job", report)
}
