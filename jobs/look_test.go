package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
	"github.com/dynahold/dynahold/semaphore"
)

// backlog puts jobs in line without an Enqueue for each: the first is place.
func backlog(t testing.TB, b bench, resource string, n int, place func(i int) string, more attrs) {
	t.Helper()
	for i := 0; i < n; {
		var batch []types.WriteRequest
		for ; i < n && len(batch) < 25; i++ {
			row := attrs{"pk": str("JOBS#" + resource), "sk": str(place(i)), "id": str(place(i)), "job": str(`{"n":1}`), "state": str("queued"), "attempts": num("0")}
			for name, v := range more {
				row[name] = v
			}
			batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: row}})
		}
		rig.Must(b.Client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{b.Table: batch}}))(t)
	}
	rig.Must(b.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table, Key: attrs{"pk": str(b.shardOf(t, resource)), "sk": str(resource)},
		UpdateExpression: ptr("ADD queued :n"), ExpressionAttributeValues: attrs{":n": num(fmt.Sprint(n))}}))(t)
}

// later are places behind all that are enqueued now.
func later(i int) string { return fmt.Sprintf("f%014x-AAAAAAAAAAAAA", i) }

// A job that ends between the two reads of Next must not make it read the whole
// line, nor say that the resource is busy.
func TestAJobThatEndsWhileTheLineIsRead(t *testing.T) {
	b := newBench(t)
	s, other := b.open(t, jobs.Config{}), bench{b.Peer()}.open(t, jobs.Config{})
	enqueue(t, s, "staging", 1)
	j := rig.Must(other.Next(t.Context(), "staging"))(t)
	backlog(t, b, "staging", 1000, later, nil)
	ended := false
	b.Count.OnRequest(func(op string, _ []byte) {
		if op == "Query" && !ended {
			ended = true
			rig.Is(t, j.Done(context.WithoutCancel(t.Context())))
		}
	})
	b.Count.Reset()
	next := rig.Must(s.Next(t.Context(), "staging"))(t)
	b.Count.OnRequest(nil)
	if n := b.Count.Total(); n > 6 {
		t.Errorf("%d requests: %v", n, b.Count.Counts())
	}
	rig.Is(t, next.Done(t.Context()))
}

// What Next costs does not depend on how many jobs wait.
func TestNextCostsTheSameBeforeAnyBacklog(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		running int
		more    attrs
		most    int
		want    error
	}{
		"due":              {0, nil, 3, nil},
		"busy":             {1, nil, 2, jobs.ErrBusy},
		"none is due":      {0, attrs{"notBefore": num("9999999999")}, 7, jobs.ErrNoWork},
		"busy, not due":    {1, attrs{"notBefore": num("9999999999")}, 2, jobs.ErrBusy},
		"none is readable": {0, attrs{"state": str("strange")}, 7, jobs.ErrNoWork},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, jobs.Config{Lease: time.Hour}) // a renewal is a request, too
			enqueue(t, s, "staging", 1)
			j := rig.Must(s.Next(t.Context(), "staging"))(t)
			if of.running == 0 {
				rig.Is(t, j.Done(t.Context()))
			}
			backlog(t, b, "staging", rig.Share(400, 1500), later, of.more)
			for range 3 {
				b.Count.Reset()
				j, err := s.Next(t.Context(), "staging")
				if of.want != nil {
					rig.Is(t, err, of.want)
				} else {
					rig.Is(t, err)
				}
				if n := b.Count.Total(); n > of.most {
					t.Errorf("%d requests, want at most %d: %v", n, of.most, b.Count.Counts())
				}
				if err == nil {
					rig.Is(t, j.Done(t.Context()))
				}
			}
		})
	}
}

// passing returns what lets a minute pass on a semaphore's clock, so that a test
// need not wait, nor use a lease that a busy machine cannot keep.
func passing() func(*queue) {
	minutes := time.Duration(0)
	return func(s *queue) {
		minutes++
		s.SetClock(minutes * time.Minute)
	}
}

// The job of a dead holder is found also behind thousands that stand in front
// of it, by and by.
func TestADeadHolderBehindTheHeadOfTheLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 1)
	pass := passing()
	dying := bench{b.Peer()}.open(t, jobs.Config{})
	dying.SetClock(-time.Hour) // the lease that it writes is over for all others
	dead := rig.Must(dying.Next(t.Context(), "staging"))(t)
	backlog(t, b, "staging", 2500, func(i int) string { return fmt.Sprintf("0%014x-AAAAAAAAAAAAA", i) }, nil)
	rig.Await(t, "the dead holder's job is found", func() bool {
		pass(s)
		b.Count.Reset()
		j, err := s.Next(t.Context(), "staging")
		if n := b.Count.Total(); n > 8 {
			t.Fatalf("%d requests: %v", n, b.Count.Counts())
		}
		if err != nil {
			rig.Is(t, err, jobs.ErrBusy)
			return false
		}
		if j.ID() != dead.ID() || j.Attempt() != 2 {
			t.Errorf("job %s, attempt %d", j.ID(), j.Attempt())
		}
		rig.Is(t, j.Done(t.Context()))
		return true
	})
	wantResource(t, s, "staging", 2500, 0, 0)
}

// The same for a job that is due behind thousands that are not.
func TestADueJobBehindOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	pass := passing()
	enqueue(t, s, "staging", 1)
	backlog(t, b, "staging", 1500, func(i int) string { return fmt.Sprintf("0%014x-AAAAAAAAAAAAA", i) }, attrs{"notBefore": num("9999999999")})
	rig.Await(t, "the job is found", func() bool {
		pass(s)
		j, err := s.Next(t.Context(), "staging")
		if err != nil {
			rig.Is(t, err, jobs.ErrNoWork)
			return false
		}
		rig.Is(t, j.Done(t.Context()))
		return true
	})
}

// A table without transactions is refused, by name.
func TestAGlobalTableWithStrongConsistency(t *testing.T) {
	b := newBench(t)
	s := rig.Must(jobs.New[deploy](rig.Strong{Client: b.Client}, b.Table, jobs.Config{}))(t)
	refused := func(err error) {
		t.Helper()
		rig.Is(t, err, repo.ErrSchema)
		if err != nil && !strings.Contains(err.Error(), "global table with strong consistency") {
			t.Errorf("error %v", err)
		}
	}
	refused(s.EnsureTable(t.Context()))
	_, err := s.Enqueue(t.Context(), "staging", deploy{})
	refused(err)
	enqueue(t, b.open(t, jobs.Config{}), "staging", 1)
	_, err = s.Next(t.Context(), "staging")
	refused(err)
	refused(s.Run(t.Context(), func(context.Context, *jobs.Job[deploy]) error { return nil }))
	permits := rig.Must(semaphore.New(rig.Strong{Client: b.Client}, b.Table, semaphore.Config{}))(t)
	rig.Is(t, permits.EnsureTable(t.Context()))
	rig.Is(t, rig.Must(permits.TryAcquire(t.Context(), "printer"))(t).Release(t.Context())) // permits need none
}

// looks waits until a dispatcher has looked a few times.
func looks(t *testing.T, b bench) {
	t.Helper()
	before := b.Net.Requests()
	rig.Await(t, "looks", func() bool { return b.Net.Requests() >= before+50 })
}

// Dispatchers find the jobs of the dead where clocks were ahead: the one that has started a
// job before, or their own, which was set back since.
func TestTheDeadAreFoundBehindClocksThatWereAhead(t *testing.T) {
	for _, limit := range []int{1, 2} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			b, peer := newBench(t), (&rig.Rig{}).Peer()
			var clock repotest.Clock
			cfg := jobs.Config{Limit: limit, Poll: 20 * time.Millisecond, Table: repo.TableConfig{Clock: clock.Now}}
			s := b.open(t, cfg)
			dies := rig.Must(jobs.New[deploy](peer.Client, b.Table, cfg))(t)
			clock.Advance(time.Hour)
			enqueue(t, dies, "mail", limit)
			var running []*jobs.Job[deploy]
			for range limit {
				running = append(running, rig.Must(dies.Next(t.Context(), "mail"))(t))
			}
			started, end := dispatch(t, s)
			looks(t, b) // at what runs, and rests
			b.Always(fault.DropRequest)
			clock.Advance(-time.Hour)
			for _, j := range running {
				rig.Is(t, j.Done(t.Context()))
			}
			enqueue(t, dies, "mail", limit)
			for range limit {
				rig.Must(dies.Next(t.Context(), "mail"))(t)
			}
			peer.Always(fault.DropRequest)
			clock.Advance(time.Minute)
			b.Faults(nil)
			startsWithin(t, started, rig.Patience/3)
			end()
		})
	}
}

// Where the limit was lowered while jobs ran, those of the dead are not taken over one in a
// lease: but for the last, of which nothing tells when it was started.
func TestTheDeadAboveALowerLimit(t *testing.T) {
	b, peer := newBench(t), (&rig.Rig{}).Peer()
	var clock repotest.Clock
	cfg := jobs.Config{Poll: 20 * time.Millisecond, Table: repo.TableConfig{Clock: clock.Now}}
	s := b.open(t, cfg)
	dies := rig.Must(jobs.New[deploy](peer.Client, b.Table, cfg))(t)
	rig.Is(t, s.SetLimit(t.Context(), "mail", 3))
	enqueue(t, dies, "mail", 3)
	for range 3 {
		rig.Must(dies.Next(t.Context(), "mail"))(t)
	}
	peer.Always(fault.DropRequest)
	rig.Is(t, s.SetLimit(t.Context(), "mail", 1))
	clock.Advance(32 * time.Second)
	started, end := dispatch(t, s)
	for _, until := range []time.Duration{11 * time.Second, 32 * time.Second, 0} {
		startsWithin(t, started, rig.Patience/3)
		looks(t, b)
		clock.Advance(until)
	}
	end()
}
