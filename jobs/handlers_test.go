package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

type explosive struct{ N int }

func (e *explosive) UnmarshalJSON(text []byte) error {
	type plain explosive
	if err := json.Unmarshal(text, (*plain)(e)); err != nil {
		return err
	}
	switch e.N {
	case 0:
		panic("bad")
	case 1:
		runtime.Goexit()
	case 2:
		return (*nilError)(nil)
	case 4:
		return hollow{}
	}
	return nil
}

func (e explosive) MarshalJSON() ([]byte, error) {
	if e.N == 5 {
		panic("bad")
	}
	type plain explosive
	return json.Marshal(plain(e))
}

// nilError is an error whose method cannot be called on nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// hollow is an error whose cause cannot be asked for.
type hollow struct{ cause *nilError }

func (hollow) Error() string   { return "hollow" }
func (e hollow) Unwrap() error { return errors.New(e.cause.text) }

// What panics while it is decoded fails its job, and the others go on.
func TestAValueThatPanics(t *testing.T) {
	for _, run := range []bool{false, true} {
		b := newBench(t)
		var log logged
		s := rig.Must(jobs.New[explosive](b.Client, b.Table, jobs.Config{Workers: 1, Retry: jobs.Retry{Attempts: 1}, Table: log.config()}))(t)
		for _, n := range []int{0, 1, 2, 4, 3} {
			put(t, s, "staging", explosive{n})
		}
		if run {
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[explosive]) error {
				if j.Value().N != 3 {
					t.Errorf("value %d", j.Value().N)
				}
				cancel()
				return nil
			}))
			cancel()
		} else {
			j := rig.Must(s.Next(t.Context(), "staging"))(t)
			if j.Value().N != 3 {
				t.Errorf("value %d", j.Value().N)
			}
			rig.Is(t, j.Done(t.Context()))
		}
		r := rig.Must(s.Resource(t.Context(), "staging"))(t)
		if r.Dead != 4 || r.Queued != 0 || r.Running != 0 {
			t.Errorf("%+v", r)
		}
		n := 0
		for d, err := range s.Dead(t.Context(), "staging") { // decodes them, too
			n++
			rig.Is(t, err, repo.ErrSchema)
			if d.Error == "" {
				t.Error("a dead letter without a reason")
			}
		}
		if n != 4 {
			t.Errorf("%d dead letters", n)
		}
		log.has(t, "dynahold: a job's value cannot be read")
	}
}

// An error that is a nil pointer, or whose text is no text, fails its job.
func TestErrorsThatPanic(t *testing.T) {
	for name, bad := range map[string]error{"nil pointer": (*nilError)(nil), "without a cause": hollow{}, "not UTF-8": errors.New("\xff\xfe bad"), "cut in a character": errors.New(strings.Repeat("ü", 999) + "x")} {
		b := newBench(t)
		s := b.open(t, jobs.Config{Workers: 1, Retry: jobs.Retry{Attempts: 1}})
		enqueue(t, s, "staging", 2)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
			if j.Value().N == 0 {
				return bad
			}
			cancel()
			return nil
		}))
		cancel()
		wantResource(t, s, "staging", 0, 0, 1)
		enqueue(t, s, "staging", 1)
		rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), bad))
		wantResource(t, s, "staging", 0, 0, 2)
		for d, err := range s.Dead(t.Context(), "staging") {
			rig.Is(t, err)
			if d.Error == "" {
				t.Errorf("%s: a dead letter without a reason", name)
			}
		}
		audit(t, s)
	}
}

// A handler that hangs is not renewed for ever, and neither its worker nor Run
// wait for it.
func TestAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logged
	s := b.open(t, jobs.Config{Workers: 1, Lease: time.Second, ClockSkew: -1, HandlerTimeout: 50 * time.Millisecond, Retry: jobs.Retry{Attempts: 2, Min: time.Millisecond},
		Wait: repo.Wait{Max: 50 * time.Millisecond}, Poll: 100 * time.Millisecond, Table: log.config()})
	rig.Is(t, s.SetLimit(t.Context(), "staging", 2))
	enqueue(t, s, "staging", 2)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	release := make(chan struct{})
	defer close(release)
	causes := make(chan error, 10)
	// Which of the two comes first once the worker is free is nobody's promise.
	var twice, obedient atomic.Bool
	seen := func(what *atomic.Bool) {
		what.Store(true)
		if twice.Load() && obedient.Load() {
			cancel()
		}
	}
	rig.Is(t, s.Run(ctx, func(held context.Context, j *jobs.Job[deploy]) error {
		if j.Value().N == 0 {
			<-held.Done()
			causes <- context.Cause(held)
			if j.Attempt() == 2 {
				seen(&twice)
			}
			<-release // deaf
			return nil
		}
		<-held.Done() // one that obeys fails
		seen(&obedient)
		return context.Cause(held)
	}))
	rig.Is(t, <-causes, context.DeadlineExceeded)
	rig.Is(t, <-causes, context.DeadlineExceeded)
	if !twice.Load() || !obedient.Load() {
		t.Errorf("job taken over %v, other job handled %v", twice.Load(), obedient.Load())
	}
	log.has(t, "dynahold: a handler does not return in time")
}

// Handlers see the values of Run's context.
func TestHandlersHaveTheValuesOfTheContext(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{HandlerTimeout: time.Hour})
	enqueue(t, s, "staging", 1)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "trace"))
	defer cancel()
	rig.Is(t, s.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
		if held.Value(contextKey{}) != "trace" {
			t.Error("the value is missing")
		}
		cancel()
		return nil
	}))
}

// A handler that ended its goroutine took a worker with it, and its job was
// renewed for ever.
func TestAHandlerThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, jobs.Config{Workers: 1, Retry: jobs.Retry{Attempts: 1}})
	enqueue(t, s, "staging", 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var handled atomic.Int32
	rig.Is(t, s.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
		if handled.Add(1) == 1 {
			runtime.Goexit()
		}
		time.AfterFunc(time.Second, cancel)
		return nil
	}))
	wantResource(t, s, "staging", 0, 0, 1)
	audit(t, s)
}

// quitter ends the goroutine in which a request is sent the first time that it is asked for:
// op is the operation, behind it the row, or the partition, which it is about.
type quitter struct {
	*dynamodb.Client
	at    []string
	ended sync.Map
}

func (q *quitter) quits(op string) {
	if _, again := q.ended.LoadOrStore(op, true); slices.Contains(q.at, op) && !again {
		runtime.Goexit()
	}
}

func (q *quitter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	q.quits("TransactWriteItems")
	out, err := q.Client.TransactWriteItems(ctx, in, o...)
	if in.TransactItems[0].Delete != nil {
		q.quits("behind a Delete")
	}
	return out, err
}

func (q *quitter) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	for _, v := range in.ExpressionAttributeValues {
		if s, ok := v.(*types.AttributeValueMemberS); ok {
			q.quits("Query " + s.Value)
		}
	}
	return q.Client.Query(ctx, in, o...)
}

func (q *quitter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	q.quits("GetItem " + in.Key["pk"].(*types.AttributeValueMemberS).Value)
	return q.Client.GetItem(ctx, in, o...)
}

func (q *quitter) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	q.quits("DescribeTable")
	return q.Client.DescribeTable(ctx, in, o...)
}

// A client that ended the goroutine in which Run has called it took a worker with it, and its
// resource was never looked at again.
func TestARunWhoseClientEndsItsGoroutine(t *testing.T) {
	for name, at := range map[string][]string{
		"start": {"Query JOBS#staging"}, "end": {"behind a Delete", "GetItem DEAD#staging"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			enqueue(t, b.open(t, jobs.Config{}), "staging", 2)
			client := &quitter{Client: b.Client, at: at}
			s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Workers: 1, Poll: 100 * time.Millisecond}))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var handled atomic.Int32
			rig.Is(t, s.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
				if handled.Add(1) == 2 {
					cancel()
				}
				return nil
			}))
			for _, op := range at {
				if _, ended := client.ended.Load(op); !ended {
					t.Errorf("no %s", op)
				}
			}
			rig.Equal(t, handled.Load(), 2, "jobs that were handled")
			wantResource(t, s, "staging", 0, 0, 0)
			audit(t, s)
		})
	}
}

// A client that ended the goroutine in which it was called left all callers at the resource
// without an answer, also behind the end of their contexts.
func TestAClientThatEndsItsGoroutine(t *testing.T) {
	b := newBench(t)
	enqueue(t, b.open(t, jobs.Config{}), "staging", 1)
	s := rig.Must(jobs.New[deploy](&quitter{Client: b.Client, at: []string{"TransactWriteItems"}}, b.Table, jobs.Config{Lease: 3 * time.Second, ClockSkew: -1}))(t)
	started := make(chan *jobs.Job[deploy], 1)
	go func() {
		if _, err := s.Next(t.Context(), "staging"); err == nil {
			t.Error("the start had an answer")
		}
		started <- rig.Must(s.Next(t.Context(), "staging"))(t)
	}()
	select {
	case job := <-started:
		rig.Is(t, job.Done(t.Context()))
	case <-time.After(rig.Patience):
		t.Fatal("Next waits")
	}
	audit(t, s)
}

// refused is a client whose transactions are refused as invalid, which nobody explains.
type refused struct{ *quitter }

func (r refused) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return rig.Strong{Client: r.Client}.TransactWriteItems(ctx, in, o...)
}

// A client that ended the goroutine in which it was asked for the reason of a refusal left all
// callers at the resource without an answer.
func TestAClientThatEndsItsGoroutineBehindARefusal(t *testing.T) {
	b := newBench(t)
	s := rig.Must(jobs.New[deploy](refused{&quitter{Client: b.Client, at: []string{"DescribeTable"}}}, b.Table, jobs.Config{}))(t)
	answer := make(chan error, 1)
	go func() {
		_, err := s.Enqueue(t.Context(), "staging", deploy{})
		answer <- err
	}()
	select {
	case err := <-answer:
		if err == nil || repo.VerdictOf(err) != repo.NotWritten {
			t.Error(err)
		}
	case <-time.After(rig.Patience):
		t.Fatal("Enqueue waits")
	}
}
