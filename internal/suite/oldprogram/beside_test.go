package oldprogram_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

func TestAnEarlierProgramBesideThisOne(t *testing.T) {
	program, err := build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("each understands the other", func(t *testing.T) { eachUnderstandsTheOther(t, program) })
	t.Run("ids of operations go to rows", func(t *testing.T) { idsGoToRows(t, program) })
	t.Run("dispatchers of both share the work", func(t *testing.T) { dispatchersOfBothShareTheWork(t, program) })
}

func open(t *testing.T, table string) fixture.Work[int] {
	t.Helper()
	now := fixture.OpenWork[int](t, rig.Client(), table, jobs.Config{Poll: 50 * time.Millisecond,
		Retry: jobs.Retry{Attempts: 3, Min: time.Millisecond, Max: time.Millisecond}})
	t.Cleanup(func() { _ = now.Close(context.Background()) })
	return now
}

// audits fails the test unless both programs find every counter to be that of its rows.
func audits(t *testing.T, now fixture.Work[int], before *old) {
	t.Helper()
	for tally, err := range now.Audit(t.Context()) {
		if rig.Is(t, err); err == nil && !tally.OK() {
			t.Errorf("counters: %v", tally)
		}
	}
	before.must("ok", "audit all")
}

// Each call of one program is understood by the other: limits, permits, jobs, dead letters,
// pauses, tokens and what is ended by force.
func eachUnderstandsTheOther(t *testing.T, program string) {
	table := rig.New(t).Table
	now := open(t, table)
	rig.Is(t, now.EnsureTable(t.Context()))
	before, ctx := startOld(t, program, table), t.Context()

	// One limit for the permits and jobs of both.
	before.must("ok", "limit press 2")
	held := rig.Must(now.TryAcquire(ctx, "press"))(t)
	theirs := before.does("acquire press")
	if token, err := strconv.ParseInt(theirs[len(theirs)-1], 10, 64); err != nil || token <= held.Token() {
		t.Fatalf("the old program's permit is %q, after token %d", theirs, held.Token())
	}
	_, err := now.TryAcquire(ctx, "press")
	rig.Is(t, err, semaphore.ErrBusy)
	before.must("busy", "acquire press")
	rig.Must(now.Enqueue(ctx, "press", 1))(t)
	before.must("busy", "next press")
	_, err = now.Next(ctx, "press")
	rig.Is(t, err, jobs.ErrBusy)
	rig.Is(t, held.Release(ctx))
	started := before.does("next press")
	_, err = now.TryAcquire(ctx, "press")
	rig.Is(t, err, semaphore.ErrBusy)
	before.must("ok", "done press %s", started[0])
	before.must("ok", "release press %s", theirs[0])

	// What is queued, failed, given back and buried by one is the other's.
	before.must("ok", "enqueue mail 7 message-7")
	rig.Equal(t, rig.Must(now.Enqueue(ctx, "mail", 7, jobs.WithID("message-7")))(t), "message-7", "enqueued again as")
	for attempt := 1; attempt <= 3; attempt++ {
		rig.Await(t, "the job is due", func() bool {
			j, err := now.Next(ctx, "mail")
			if errors.Is(err, jobs.ErrNoWork) {
				return false
			}
			if rig.Is(t, err); j.Value() != 7 || j.Attempt() != attempt {
				t.Errorf("%v with value %d, want attempt %d", j, j.Value(), attempt)
			}
			rig.Is(t, j.Fail(ctx, errors.New("no address")))
			return true
		})
	}
	before.must("ok", "requeue mail message-7")
	again := rig.Must(now.Next(ctx, "mail"))(t)
	rig.Is(t, again.Return(ctx))
	if said := before.does("next mail"); len(said) != 3 || said[1] != "7" {
		t.Errorf("the old program starts %q", said)
	}
	before.must("ok", "done mail message-7")
	before.must("none", "next mail")

	// What is for later the old program does not see before its time, and then it is its own.
	later := rig.Must(now.Enqueue(ctx, "mail", 8, jobs.After(time.Hour)))(t)
	rig.Must(now.Enqueue(ctx, "mail", 9, jobs.After(time.Hour)))(t)
	before.must("none", "next mail")
	audits(t, now, before)
	rig.Is(t, now.Reschedule(ctx, "mail", later, time.Now()))
	if said := before.does("next mail"); len(said) != 3 || said[0] != later || said[1] != "8" {
		t.Errorf("the old program starts %q", said)
	}
	before.must("ok", "done mail %s", later)
	before.must("none", "next mail")

	// What an operator does by one holds for the other, who learns it.
	rig.Is(t, now.Pause(ctx, "mail"))
	before.must("busy", "acquire mail")
	before.must("ok", "resume mail")
	held = rig.Must(now.TryAcquire(ctx, "mail"))(t)
	before.must("ok", "break mail %s", held.ID())
	rig.Is(t, held.Release(ctx), repo.ErrLockLost)
	audits(t, now, before)
}

// Jobs of both are run by the dispatchers of both at the same time: none is lost, none is
// done twice, and no more run or are held than the limit.
func dispatchersOfBothShareTheWork(t *testing.T, program string) {
	table := rig.New(t).Table
	now := open(t, table)
	rig.Is(t, now.EnsureTable(t.Context()))
	before, producer := startOld(t, program, table), startOld(t, program, table)
	const each, resources = 30, 3
	for r := range resources {
		producer.must("ok", "limit r%d 2", r)
	}
	var mu sync.Mutex
	var done []string
	over := 0
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	before.begin("run all 2000")
	go func() {
		ended <- now.Run(ctx, func(ctx context.Context, j *jobs.Job[int]) error {
			r, err := now.Resource(ctx, j.Resource())
			mu.Lock()
			defer mu.Unlock()
			if done = append(done, strconv.Itoa(j.Value())); err != nil || r.Running > 2 {
				over++
			}
			return nil
		})
	}()
	var want []string
	for i := range each {
		resource := "r" + strconv.Itoa(i%resources)
		producer.must("ok", "enqueue %s %d", resource, 2*i)
		rig.Must(now.Enqueue(t.Context(), resource, 2*i+1))(t)
		want = append(want, strconv.Itoa(2*i), strconv.Itoa(2*i+1))
	}
	ran := before.said()
	cancel()
	rig.Is(t, <-ended)
	mu.Lock()
	defer mu.Unlock()
	if len(ran) < 2 || len(done) == 0 {
		t.Errorf("the old program has done %d jobs and the new one %d: each should have some", len(ran)-1, len(done))
	}
	all := slices.Concat(done, ran[1:])
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) || over > 0 {
		t.Errorf("done %v, want %v; %d times more ran than the limit", all, want, over)
	}
	audits(t, now, before)
}

type product struct {
	SKU     string `dynamodbav:"sku" repo:"pk"`
	Stock   int    `dynamodbav:"stock"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// The ids of both programs are made once, while they lie on the item. Once they have gone to
// rows beside it, which the old program does not know, that one refuses the item.
func idsGoToRows(t *testing.T, program string) {
	r, ctx, key := rig.New(t), t.Context(), repo.Key{Partition: "apple"}
	table := rig.Must(repo.NewTable[product](rig.Client(), r.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(ctx))
	now := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	rig.Must(now.Create(ctx, product{SKU: "apple", Stock: 1000}))(t)
	take := func(id string) (again bool) {
		o := now.Once(id)
		rig.Must(o.Update(ctx, key, func(_ context.Context, p *product) error { p.Stock--; return nil }))(t)
		return o.Repeated()
	}
	before, calls := startOld(t, program, r.Table), []string{"version", "lock", "apply"}
	for i := range 60 {
		id := strconv.Itoa(i)
		if i%2 == 0 {
			take(id)
		}
		before.must("ok", "take %s %s %s", r.Table, calls[i%3], id)
		if !take(id) {
			t.Errorf("id %s is made again", id)
		}
	}
	for i := 60; i < 200; i++ {
		take(strconv.Itoa(i))
	}
	for i, call := range calls {
		for _, id := range []string{strconv.Itoa(i), strconv.Itoa(100 + i), "new"} {
			if said := before.does("take %s %s %s", r.Table, call, id); !slices.Equal(said, []string{"error", "schema"}) {
				t.Errorf("the old program says %q to id %s, by %s", said, id, call)
			}
		}
	}
	for i := range 200 {
		if !take(strconv.Itoa(i)) {
			t.Errorf("id %d is forgotten", i)
		}
	}
	rig.Equal(t, rig.Must(table.Get(ctx, key))(t).Stock, 800, "are left")
}
