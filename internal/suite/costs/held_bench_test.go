package costs_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
)

// Locks that one process holds and renews, all taken at once: their memory,
// the goroutines while nothing is due, and whether renewals come in time and
// evenly. It runs for a lease, so that every lock is renewed twice.
//
// The service answers from memory, and a renewal after 4 ms: an engine on the
// same cores would be what is measured.
func BenchmarkHeldLocks(b *testing.B) {
	sizes, lease := []int{10_000, 100_000}, 30*time.Second
	if testing.Short() {
		sizes, lease = []int{500}, 3*time.Second
	}
	for _, locks := range sizes {
		b.Run(strconv.Itoa(locks), func(b *testing.B) {
			for b.Loop() {
				holdLocks(b, locks, lease)
			}
		})
	}
}

func holdLocks(b *testing.B, locks int, lease time.Duration) {
	service := newRenewing(locks, lease)
	l := rig.Must(mutex.New(service, "locks", mutex.Config{Mode: mutex.FailOpen, Lease: lease, Heartbeat: lease / 3}))(b)
	held := make([]*mutex.Lock, locks)
	before, routines := heap(), runtime.NumGoroutine()
	var all sync.WaitGroup
	for part := range 16 {
		all.Go(func() {
			for i := part; i < locks; i += 16 {
				lock, err := l.TryLock(context.Background(), fmt.Sprint("lock-", i))
				if err != nil {
					b.Error(err)
					return
				}
				held[i] = lock
			}
		})
	}
	all.Wait()
	idle := runtime.NumGoroutine() - routines
	time.Sleep(lease)
	renewals := service.renewals.Load()
	lost := 0
	for _, lock := range held {
		if !lock.Until().After(time.Now()) {
			lost++
		}
	}
	// After renewals: what they leave behind belongs to a lock.
	b.ReportMetric(float64(heap()-before)/float64(locks), "B/lock")
	b.ReportMetric(float64(idle), "goroutines")
	b.ReportMetric(float64(lost), "lost")
	b.ReportMetric(float64(renewals)/lease.Seconds(), "renewals/s")
	b.ReportMetric(float64(service.busiest())/tick.Seconds(), "most-renewals/s")
	b.ReportMetric(100*float64(service.latest.Load())/float64(lease), "latest-%-of-lease")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		b.Error(err)
	}
}

// tick is the span over which the busiest moment is measured.
const tick = 100 * time.Millisecond

// renewing is a service where every lock is free, which notes the renewals of
// locks that are called "lock-" and a number.
type renewing struct {
	*dynamodb.Client // nil: nothing else is called
	began            time.Time
	last             []atomic.Int64 // by lock: when it was taken or renewed, since began
	latest           atomic.Int64   // the longest time between two of them
	renewals         atomic.Int64
	ticks            []atomic.Int64 // renewals that arrived, by tick since began
}

func newRenewing(locks int, lease time.Duration) *renewing {
	return &renewing{began: time.Now(), last: make([]atomic.Int64, locks), ticks: make([]atomic.Int64, 10*lease/tick)}
}

func (s *renewing) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	name := in.Key["name"].(*types.AttributeValueMemberS).Value
	i, err := strconv.Atoi(strings.TrimPrefix(name, "lock-"))
	if err != nil {
		return nil, err
	}
	arrived := time.Since(s.began)
	last := &s.last[i]
	if in.ReturnValues != types.ReturnValueAllNew {
		time.Sleep(4 * time.Millisecond)
		s.ticks[arrived/tick].Add(1)
		s.renewals.Add(1)
		age := int64(time.Since(s.began)) - last.Load()
		for most := s.latest.Load(); age > most && !s.latest.CompareAndSwap(most, age); most = s.latest.Load() {
		}
		last.Store(int64(time.Since(s.began)))
		return &dynamodb.UpdateItemOutput{}, nil
	}
	last.Store(int64(arrived))
	v := in.ExpressionAttributeValues
	return &dynamodb.UpdateItemOutput{Attributes: map[string]types.AttributeValue{
		"name": in.Key["name"], "lockedBy": v[":me"], "lockTime": v[":until"], "lockLease": v[":lease"],
		"lockHeld": v[":floor"], "lockToken": v[":floor"], "lockStolen": v[":floor"],
	}}, nil
}

// busiest is how many renewals arrived in the busiest tick.
func (s *renewing) busiest() (most int64) {
	for i := range s.ticks {
		most = max(most, s.ticks[i].Load())
	}
	return most
}

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) // far below the limit
}
