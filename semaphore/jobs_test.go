package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// The names of the tests carry the rows of the system that the package serves:
// S5 is the multi-value semaphore with a queue of work.

func TestS5_1_ResourcesDoNotWaitForEachOther(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	var jobs []*semaphore.Job[deploy]
	for i := range 40 { // unknown until now, in one table
		name := fmt.Sprintf("env-%d", i)
		enqueue(t, s, name, 2)
		jobs = append(jobs, rig.Must(s.Next(t.Context(), name))(t))
	}
	for _, j := range jobs { // all run at once
		_, err := s.Next(t.Context(), j.Resource())
		rig.Is(t, err, semaphore.ErrBusy)
		rig.Is(t, j.Done(t.Context()))
	}
	audit(t, s)
}

func TestS5_2_EnqueueRegistersAndCounts(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 3)
	enqueue(t, s, "prod", 1)
	found := map[string]int{}
	for r, err := range s.Resources(t.Context()) {
		rig.Is(t, err)
		found[r.Name] = r.Queued
	}
	if len(found) != 2 || found["staging"] != 3 || found["prod"] != 1 {
		t.Errorf("resources %v", found)
	}
	audit(t, s)
}

func TestS5_3_OldestFirst(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 25)
	for want := range 25 {
		j := rig.Must(s.Next(t.Context(), "staging"))(t)
		if j.Value().N != want || j.Attempt() != 1 {
			t.Errorf("job %d, attempt %d; want %d", j.Value().N, j.Attempt(), want)
		}
		rig.Is(t, j.Done(t.Context()))
	}
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, semaphore.ErrNoWork)
	_, err = s.Next(t.Context(), "unheard-of")
	rig.Is(t, err, semaphore.ErrNoWork)
	audit(t, s)
}

func TestS5_4_LimitsThatChangeWhileWorkRuns(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 6)
	next := func() *semaphore.Job[deploy] { t.Helper(); return rig.Must(s.Next(t.Context(), "staging"))(t) }
	busy := func(running, limit int) {
		t.Helper()
		_, err := s.Next(t.Context(), "staging")
		var e *semaphore.BusyError
		if !errors.As(err, &e) || e.Running != running || e.Limit != limit {
			t.Errorf("error %v, want %d of %d", err, running, limit)
		}
	}
	first := next()
	busy(1, 1)
	rig.Is(t, s.SetLimit(t.Context(), "staging", 3))
	second, third := next(), next()
	busy(3, 3)
	rig.Is(t, s.SetLimit(t.Context(), "staging", 1)) // what runs goes on
	busy(3, 1)
	rig.Is(t, first.Done(t.Context()))
	rig.Is(t, second.Done(t.Context()))
	busy(1, 1)
	p, err := s.TryAcquire(t.Context(), "staging") // permits and jobs share the limit
	rig.Is(t, err, semaphore.ErrBusy, repo.ErrLocked)
	if p != nil {
		t.Error("a permit beside the error")
	}
	rig.Is(t, third.Done(t.Context()))
	rig.Is(t, next().Done(t.Context()))
	wantResource(t, s, "staging", 2, 0, 0)
	audit(t, s)
}

func TestS5_5_FailedWorkIsRetriedThenDead(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Retry: semaphore.Retry{Attempts: 3, Min: 20 * time.Millisecond, Max: time.Second}})
	enqueue(t, s, "staging", 2)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	id := j.ID()
	rig.Is(t, j.Fail(t.Context(), errors.New("no disk")))
	other := rig.Must(s.Next(t.Context(), "staging"))(t) // what failed is not due yet
	if other.Value().N != 1 {
		t.Errorf("job %d before its time", other.Value().N)
	}
	rig.Is(t, other.Done(t.Context()))
	for attempt := 2; attempt <= 3; attempt++ {
		j = due(t, s, "staging")
		if j.ID() != id || j.Attempt() != attempt {
			t.Errorf("job %s, attempt %d; want %s, %d", j.ID(), j.Attempt(), id, attempt)
		}
		audit(t, s)
		rig.Is(t, j.Fail(t.Context(), fmt.Errorf("no disk, attempt %d", attempt)))
	}
	wantResource(t, s, "staging", 0, 0, 1)
	audit(t, s)
	for d, err := range s.Dead(t.Context(), "staging") {
		rig.Is(t, err)
		if d.ID != id || d.Value.N != 0 || d.Attempts != 3 || d.Error != "no disk, attempt 3" {
			t.Errorf("dead letter %+v", d)
		}
	}
	rig.Is(t, s.Requeue(t.Context(), "staging", "unknown"), repo.ErrNotFound)
	rig.Is(t, s.Requeue(t.Context(), "staging", id))
	rig.Is(t, s.Requeue(t.Context(), "staging", id), repo.ErrNotFound)
	rig.Is(t, s.Discard(t.Context(), "staging", id), repo.ErrNotFound)
	audit(t, s)
	j = rig.Must(s.Next(t.Context(), "staging"))(t)
	if j.ID() != id || j.Attempt() != 1 {
		t.Errorf("requeued as %s, attempt %d", j.ID(), j.Attempt())
	}
	rig.Is(t, j.Done(t.Context()))
	wantResource(t, s, "staging", 0, 0, 0)
}

// due waits for a job that was failed, or that was its dead holder's.
func due(t testing.TB, s *sem, resource string) *semaphore.Job[deploy] {
	t.Helper()
	var j *semaphore.Job[deploy]
	rig.Await(t, "a job is due", func() (got bool) {
		var err error
		if j, err = s.Next(t.Context(), resource); err != nil && !errors.Is(err, semaphore.ErrNoWork) && !errors.Is(err, semaphore.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
	return j
}

func TestS5_5_WorkOfADeadHolderIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.short(t)
	rig.Is(t, s.Enqueue(t.Context(), "staging", deploy{"v", 1}))
	// A client of its own, whose renewals never arrive, stands for a dead process.
	dying := bench{b.Peer()}
	dead := rig.Must(dying.short(t).Next(t.Context(), "staging"))(t)
	dying.Always(fault.DropRequest)
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, semaphore.ErrBusy)
	j := due(t, s, "staging")
	if j.Attempt() != 2 || j.Token() <= dead.Token() || j.ID() != dead.ID() {
		t.Errorf("attempt %d, token %d after %d", j.Attempt(), j.Token(), dead.Token())
	}
	wantResource(t, s, "staging", 0, 1, 0)
	rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
	dying.Faults(nil)
	rig.Is(t, dead.Done(t.Context()), repo.ErrLockLost) // after the takeover
	rig.Is(t, dead.Fail(t.Context(), nil), repo.ErrLockLost)
	rig.Is(t, j.Done(t.Context()))
	rig.Is(t, j.Done(t.Context()), repo.ErrReleased)
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

func TestS5_5_AJobThatKillsItsHoldersDies(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{ClockSkew: 1, Retry: semaphore.Retry{Attempts: 1}})
	enqueue(t, s, "staging", 2)
	s.SetClock(-time.Hour) // the lease that it writes is over for all others
	rig.Must(s.Next(t.Context(), "staging"))(t)
	s.SetClock(0)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	if j.Value().N != 1 {
		t.Errorf("job %d", j.Value().N)
	}
	wantResource(t, s, "staging", 0, 1, 1)
	audit(t, s)
	for d, err := range s.Dead(t.Context(), "staging") {
		rig.Is(t, err)
		if !strings.Contains(d.Error, "died in attempt 1") {
			t.Errorf("dead letter %+v", d)
		}
		rig.Is(t, s.Discard(t.Context(), "staging", d.ID))
	}
	audit(t, s)
}

func TestS5_6_ParametersTravelWithTheWork(t *testing.T) {
	b := newBench(t)
	type params map[string]any
	s := rig.Must(semaphore.New[params](b.Client, b.Table, semaphore.Config{}))(t)
	rig.Is(t, s.Enqueue(t.Context(), "staging", params{"who": "ü\"\x00", "n": 1.5, "deep": []any{true, nil, map[string]any{"a": "b"}}}))
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	if got := fmt.Sprintf("%q", fmt.Sprint(j.Value())); got != fmt.Sprintf("%q", "map[deep:[true <nil> map[a:b]] n:1.5 who:ü\"\x00]") {
		t.Errorf("value %s", got)
	}
	rig.Is(t, s.Enqueue(t.Context(), "staging", params{"x": strings.Repeat("x", 500_000)}), repo.ErrTooLarge)
	rig.Is(t, s.Enqueue(t.Context(), "staging", params{"x": make(chan int)}), repo.ErrSchema)
	wantTypes := rig.Must(semaphore.New[int](b.Client, b.Table, semaphore.Config{Retry: semaphore.Retry{Attempts: 1}}))(t)
	rig.Is(t, j.Done(t.Context()))
	rig.Is(t, s.Enqueue(t.Context(), "staging", params{"not": "a number"}))
	rig.Is(t, wantTypes.Enqueue(t.Context(), "staging", 7))
	n := rig.Must(wantTypes.Next(t.Context(), "staging"))(t) // passes over what is not its own
	if n.Value() != 7 {
		t.Errorf("value %d", n.Value())
	}
	for _, err := range wantTypes.Dead(t.Context(), "staging") {
		rig.Is(t, err, repo.ErrSchema)
	}
	r, err := wantTypes.Resource(t.Context(), "staging")
	rig.Is(t, err)
	if r.Dead != 1 {
		t.Errorf("%d dead letters", r.Dead)
	}
}

func TestReturnDoesNotCountTheAttempt(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 2)
	for range 3 {
		j := rig.Must(s.Next(t.Context(), "staging"))(t)
		if j.Value().N != 0 || j.Attempt() != 1 {
			t.Errorf("job %d, attempt %d", j.Value().N, j.Attempt())
		}
		rig.Is(t, j.Return(t.Context()))
		audit(t, s)
	}
	wantResource(t, s, "staging", 2, 0, 0)
}

func TestAFailureDoesNotPutOffWhatComesLater(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Retry: semaphore.Retry{Min: time.Hour}})
	other := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
	rig.Is(t, s.Enqueue(t.Context(), "staging", deploy{"first", 1})) // by the process that failed one
	rig.Is(t, other.Enqueue(t.Context(), "staging", deploy{"second", 2}))
	for want := 1; want <= 2; want++ {
		j := rig.Must(s.Next(t.Context(), "staging"))(t)
		if j.Value().N != want {
			t.Errorf("job %d, want %d", j.Value().N, want)
		}
		rig.Is(t, j.Done(t.Context()))
	}
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, semaphore.ErrNoWork) // the failed one is not due for an hour
	wantResource(t, s, "staging", 1, 0, 0)
}

func TestClocksMinutesApart(t *testing.T) {
	b := newBench(t)
	right, ahead := b.open(t, semaphore.Config{}), b.open(t, semaphore.Config{})
	ahead.SetClock(10 * time.Minute)
	enqueue(t, ahead, "staging", 1) // due at once all the same
	j := rig.Must(right.Next(t.Context(), "staging"))(t)
	p := rig.Must(right.TryAcquire(t.Context(), "printer"))(t)
	// More than the allowance: it takes over what is still held. Nothing is
	// lost, and whoever was overtaken finds out.
	taken := rig.Must(ahead.Next(t.Context(), "staging"))(t)
	rig.Is(t, j.Done(t.Context()), repo.ErrLockLost)
	rig.Is(t, taken.Done(t.Context()))
	next := rig.Must(ahead.TryAcquire(t.Context(), "printer"))(t)
	rig.Is(t, p.Release(t.Context()), repo.ErrLockLost)
	if next.Token() <= p.Token() || taken.Token() <= j.Token() {
		t.Error("tokens did not grow")
	}
	rig.Is(t, next.Release(t.Context()))
	wantResource(t, right, "staging", 0, 0, 0)
	wantResource(t, right, "printer", 0, 0, 0)
	audit(t, right)
}

func TestMoreRunningJobsThanOnePage(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	const limit = 230 // more rows than one look takes that do not run
	rig.Is(t, s.SetLimit(t.Context(), "staging", limit))
	enqueue(t, s, "staging", limit+1)
	for want := range limit {
		if j := rig.Must(s.Next(t.Context(), "staging"))(t); j.Value().N != want {
			t.Fatalf("job %d, want %d", j.Value().N, want)
		}
	}
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, semaphore.ErrBusy)
	audit(t, s)
}

func TestLostAnswersOfJobs(t *testing.T) {
	for _, kind := range fault.AllKinds() {
		t.Run(kind.String(), func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, semaphore.Config{Retry: semaphore.Retry{Min: time.Millisecond, Max: time.Millisecond}})
			step := func(do func() error) {
				t.Helper()
				b.Nth("TransactWriteItems", 0, kind)
				err := do()
				b.Faults(nil)
				rig.Is(t, err)
				audit(t, s)
			}
			var j *semaphore.Job[deploy]
			next := func() (err error) { j, err = s.Next(t.Context(), "staging"); return err }
			step(func() error { return s.Enqueue(t.Context(), "staging", deploy{"v", 1}) })
			wantResource(t, s, "staging", 1, 0, 0)
			step(next)
			wantResource(t, s, "staging", 0, 1, 0)
			step(func() error { return j.Return(t.Context()) })
			wantResource(t, s, "staging", 1, 0, 0)
			step(next)
			step(func() error { return j.Fail(t.Context(), nil) })
			wantResource(t, s, "staging", 1, 0, 0)
			j = due(t, s, "staging")
			step(func() error { return j.Done(t.Context()) })
			wantResource(t, s, "staging", 0, 0, 0)
		})
	}
}

func TestBadSettings(t *testing.T) {
	b := newBench(t)
	for name, cfg := range map[string]semaphore.Config{
		"negative limit":           {Limit: -1},
		"negative workers":         {Workers: -1},
		"lease too short":          {Lease: time.Millisecond},
		"less than three attempts": {Lease: 3 * time.Second, AttemptTimeout: 2 * time.Second},
		"negative retry":           {Retry: semaphore.Retry{Attempts: -1}},
		"retry bounds":             {Retry: semaphore.Retry{Min: time.Hour, Max: time.Second}},
		"skew":                     {ClockSkew: -1},
		"owner":                    {Owner: strings.Repeat("x", 300)},
	} {
		if _, err := semaphore.New[int](b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	s := b.open(t, semaphore.Config{})
	for _, limit := range []int{0, -3} {
		rig.Is(t, s.SetLimit(t.Context(), "staging", limit), repo.ErrConfig)
	}
	for _, name := range []string{"", "\xff", strings.Repeat("x", 1025)} {
		rig.Is(t, s.Enqueue(t.Context(), name, deploy{}), repo.ErrKey)
		_, err := s.Acquire(t.Context(), name)
		rig.Is(t, err, repo.ErrKey)
		_, err = s.Next(t.Context(), name)
		rig.Is(t, err, repo.ErrKey)
		rig.Is(t, s.SetLimit(t.Context(), name, 1), repo.ErrKey)
		rig.Is(t, s.Requeue(t.Context(), name, "x"), repo.ErrKey)
	}
	longest := strings.Repeat("x", 1024)
	enqueue(t, s, longest, 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), longest))(t).Done(t.Context()))
	rig.Is(t, s.Run(t.Context(), nil), repo.ErrConfig)
}

func TestProgramsThatDisagreeAboutTheLimit(t *testing.T) {
	b := newBench(t)
	two, three, any := b.open(t, semaphore.Config{Limit: 2}), b.open(t, semaphore.Config{Limit: 3}), b.open(t, semaphore.Config{})
	enqueue(t, two, "staging", 1)
	for name, call := range map[string]func() error{
		"Enqueue": func() error { return three.Enqueue(t.Context(), "staging", deploy{}) },
		"Next":    func() error { _, err := three.Next(t.Context(), "staging"); return err },
		"Acquire": func() error { _, err := three.Acquire(t.Context(), "staging"); return err },
		"Run": func() error {
			return three.Run(t.Context(), func(context.Context, *semaphore.Job[deploy]) error { return nil })
		},
	} {
		err := call()
		var e *semaphore.LimitError
		if !errors.As(err, &e) || e.Stored != 2 || e.Configured != 3 || !errors.Is(err, semaphore.ErrLimit) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	rig.Is(t, any.SetLimit(t.Context(), "staging", 5)) // an operator's word is for all
	enqueue(t, three, "staging", 1)
	wantResource(t, three, "staging", 2, 0, 0)
}

func TestTableWithoutASortKey(t *testing.T) {
	b := bench{rig.New(t)}
	table := rig.Must(repo.NewKeyTable(b.Client, b.Table, repo.KeySchema{Partition: repo.KeyAttribute{Name: "pk"}}, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	s := b.open(t, semaphore.Config{})
	rig.Is(t, s.EnsureTable(t.Context()), repo.ErrSchema)
	rig.Is(t, s.Enqueue(t.Context(), "staging", deploy{}), repo.ErrSchema)
	missing := rig.Must(semaphore.New[deploy](b.Client, b.Table+"-none", semaphore.Config{}))(t)
	rig.Is(t, missing.Enqueue(t.Context(), "staging", deploy{}), repo.ErrNoTable)
	rig.Is(t, missing.Run(t.Context(), func(context.Context, *semaphore.Job[deploy]) error { return nil }), repo.ErrNoTable)
}

func TestForeignRowsAreNotTouched(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 1)
	_, err := b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "JOBS#staging"}, "sk": &types.AttributeValueMemberS{Value: "0"}, "attempts": &types.AttributeValueMemberS{Value: "x"}}})
	rig.Is(t, err)
	_, err = s.Next(t.Context(), "staging")
	rig.Is(t, err, repo.ErrSchema)
	var tallies []semaphore.Tally
	for tally, err := range s.Audit(t.Context()) {
		rig.Is(t, err)
		tallies = append(tallies, tally)
	}
	if len(tallies) != 1 || tallies[0].OK() {
		t.Errorf("the audit found %v", tallies) // it must find what is wrong
	}
	var ids []string
	for info, err := range s.Jobs(t.Context(), "staging") {
		ids = append(ids, info.ID)
		rig.Is(t, err, repo.ErrSchema)
	}
	if !slices.Equal(ids, []string{""}) {
		t.Errorf("jobs %q", ids)
	}
}
