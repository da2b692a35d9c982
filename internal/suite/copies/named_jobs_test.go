package copies_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/txn"
)

func init() {
	maps.Copy(calls, map[string]call{
		"semaphore, Enqueue":             {denied: wakesUntraced, open: enqueues(""), lands: map[moment]string{lapsed.of(0): said}},
		"semaphore, Enqueue, own id":     {denied: wakes, open: enqueues("mine")},
		"semaphore, Enqueue, later":      {denied: wakesUntraced, open: enqueues("", jobs.After(time.Second)), lands: map[moment]string{lapsed.of(0): said}},
		"semaphore, Next":                {denied: holds, open: starts},
		"semaphore, Next of what is due": {denied: givesAtLast, open: startsDue},
		"semaphore, Enqueue, unique":     {denied: wakesUntraced, open: enqueues("", jobs.Unique("key"), jobs.Priority(3)), lands: map[moment]string{lapsed.of(0): said}},
		"semaphore, EnqueueMany":         {denied: wakesUntraced, open: enqueuesMany, lands: map[moment]string{lapsed.of(0): said}},
		"semaphore, Snooze":              {denied: wakes, open: endsJob(5, func(ctx context.Context, j *jobs.Job[int]) error { return j.Snooze(ctx, time.Second) })},
		"semaphore, Cancel, later":       {denied: untraced, open: cancels(jobs.After(time.Hour)), told: map[moment]repo.Verdict{conflict: repo.Unknown}},
		"semaphore, Reschedule":          {denied: wakes, open: reschedules},
		"semaphore, Done":                {open: endsJob(5, func(ctx context.Context, j *jobs.Job[int]) error { return j.Done(ctx) })},
		"semaphore, Done, kept":          {open: keeps(func(ctx context.Context, j *jobs.Job[int]) error { return j.Done(ctx) })},
		"semaphore, DoneIn, kept": {denied: unjudged, open: keeps(func(ctx context.Context, j *jobs.Job[int]) error {
			return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return j.DoneIn(tx) })
		})},
		"semaphore, Fail":          {denied: wakes, open: endsJob(5, func(ctx context.Context, j *jobs.Job[int]) error { return j.Fail(ctx, errAsked) })},
		"semaphore, Fail for good": {open: endsJob(1, func(ctx context.Context, j *jobs.Job[int]) error { return j.Fail(ctx, errAsked) })},
		"semaphore, Return":        {open: endsJob(5, func(ctx context.Context, j *jobs.Job[int]) error { return j.Return(ctx) })},
		"semaphore, Cancel":        {denied: untraced, open: cancels(), told: map[moment]repo.Verdict{conflict: repo.Unknown}},
		"semaphore, BreakJob":      {open: breaksJob},
		"semaphore, Requeue": {denied: wakes, open: buried(func(ctx context.Context, s work, id string) error {
			return s.Requeue(ctx, room, id)
		})},
		"semaphore, Discard": {denied: untraced, open: buried(func(ctx context.Context, s work, id string) error {
			return s.Discard(ctx, room, id)
		}), told: map[moment]repo.Verdict{conflict: repo.Unknown}},
		"semaphore, Forget":         {open: forgets},
		"semaphore, ForgetSchedule": {open: forgetsSchedule},
	})
}

// job starts the job that is due, if there is one.
func job(t testing.TB, s work) *jobs.Job[int] {
	t.Helper()
	j, err := s.Next(t.Context(), room)
	if errors.Is(err, jobs.ErrNoWork) {
		return nil
	}
	rig.Is(t, err)
	return j
}

// works does what is due.
func works(t testing.TB, s work) (done int) {
	for j := job(t, s); j != nil; j = job(t, s) {
		rig.Is(t, j.Done(t.Context()))
		done++
	}
	return done
}

// passesBy enqueues a job of another producer, and does it.
func passesBy(t testing.TB, s work) {
	_ = rig.Must(s.Enqueue(t.Context(), "hall", 2))(t)
	j := rig.Must(s.Next(t.Context(), "hall"))(t)
	rig.Is(t, j.Done(t.Context()))
}

func enqueues(id string, more ...jobs.Option) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{Limit: 3})
		options := slices.Clone(more)
		if id != "" {
			options = append(options, jobs.WithID(id))
		}
		worked := 0
		return stage{
			do:     func(ctx context.Context) error { _, err := mine.Enqueue(ctx, room, 1, options...); return err },
			others: func(i int) { uses(t, theirs); passesBy(t, theirs) },
			goesOn: func() { uses(t, theirs) },
			end:    func() { p.later(2 * time.Second); worked = works(t, theirs) },
			anew:   func() { _ = worked; rig.Is(t, theirs.Forget(t.Context(), room)) },
			check: func(t testing.TB, _ repo.Verdict) {
				counted(t, theirs, 1, 0)
				p.later(2 * time.Second)
				rig.Equal(t, works(t, theirs), 1, "jobs")
			},
		}
	}
}

func enqueuesMany(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{Limit: 3})
	return stage{
		do:     func(ctx context.Context) error { _, err := mine.EnqueueMany(ctx, room, []int{1, 2, 3}); return err },
		others: func(int) { uses(t, theirs); passesBy(t, theirs) },
		goesOn: func() { uses(t, theirs) },
		end:    func() { works(t, theirs) },
		anew:   func() { rig.Is(t, theirs.Forget(t.Context(), room)) },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 3, 0)
			rig.Equal(t, works(t, theirs), 3, "jobs")
		},
	}
}

// startsDue puts a job whose time has come into its line, and starts it.
func startsDue(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{Limit: 1})
	rig.Must(theirs.Enqueue(t.Context(), room, 1, jobs.After(time.Second)))(t)
	p.later(2 * time.Second)
	var own *jobs.Job[int]
	return stage{
		do:     func(ctx context.Context) (err error) { own, err = mine.Next(ctx, room); return err },
		others: func(int) { passesBy(t, theirs) },
		goesOn: func() { p.later(time.Second); rig.Is(t, extend(t, own)) },
		end:    func() { rig.Is(t, own.Done(t.Context())) },
		anew:   func() { rig.Is(t, theirs.Forget(t.Context(), room)) },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 0, 1)
			rig.Is(t, own.Done(t.Context()))
			counted(t, theirs, 0, 0)
		},
	}
}

func starts(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{Limit: 1})
	rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
	var own *jobs.Job[int]
	return stage{
		do: func(ctx context.Context) (err error) { own, err = mine.Next(ctx, room); return err },
		others: func(int) {
			if rig.Must(theirs.Resource(t.Context(), room))(t).Running == 0 { // it was not started: the write is that of the wake-up row
				return
			}
			if j := jobOrBusy(t, theirs); j != nil {
				t.Error("two work on it")
			}
		},
		goesOn: func() { p.later(time.Second); rig.Is(t, extend(t, own)) },
		end:    func() { rig.Is(t, own.Done(t.Context())) },
		anew:   func() { rig.Is(t, theirs.Forget(t.Context(), room)) },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 0, 1)
			rig.Is(t, own.Done(t.Context()))
			counted(t, theirs, 0, 0)
		},
	}
}

func extend(t testing.TB, j *jobs.Job[int]) error { return context.Cause(j.Context()) }

// jobOrBusy is job where the limit may be used up.
func jobOrBusy(t testing.TB, s work) *jobs.Job[int] {
	j, err := s.Next(t.Context(), room)
	if errors.Is(err, jobs.ErrNoWork) || errors.Is(err, semaphore.ErrBusy) {
		return nil
	}
	rig.Is(t, err)
	return j
}

func endsJob(attempts int, do func(context.Context, *jobs.Job[int]) error) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{Retry: jobs.Retry{Attempts: attempts}})
		rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
		own := job(t, mine)
		var other *jobs.Job[int]
		// Others take what is due, work on it, and give it back.
		turns := func() {
			p.later(2 * time.Second)
			if j := job(t, theirs); j != nil {
				rig.Is(t, j.Return(t.Context()))
			}
		}
		return stage{
			do: func(ctx context.Context) error { return do(ctx, own) },
			others: func(i int) {
				if turns(); i == 11 {
					other = job(t, theirs)
				}
			},
			goesOn: turns,
			end:    func() { p.later(2 * time.Second); works(t, theirs) },
			check: func(t testing.TB, _ repo.Verdict) {
				if other != nil {
					rig.Is(t, other.Done(t.Context()))
				}
				p.later(10 * time.Second)
				works(t, theirs)
				counted(t, theirs, 0, 0)
				dead := 0
				for _, err := range theirs.Dead(t.Context(), room) {
					rig.Is(t, err)
					dead++
				}
				if dead > 1 || attempts > 1 && dead > 0 {
					t.Errorf("%d dead letters", dead)
				}
			},
		}
	}
}

// unjudged is told of a transaction that was refused unjudged: its rows are not looked at.
func unjudged(k kind, _ int) repo.Verdict {
	if k.alone { // sent again, it meets what it has left
		return repo.Written
	}
	return repo.Unknown
}

// keeps ends a job of which is kept what became of it.
func keeps(do func(context.Context, *jobs.Job[int]) error) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{Keep: time.Hour})
		rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
		own := job(t, mine)
		rig.Is(t, own.SetResult("own"))
		return stage{
			do:     func(ctx context.Context) error { return do(ctx, own) },
			others: func(int) { passesBy(t, theirs) },
			goesOn: func() { passesBy(t, theirs) },
			end:    func() { p.later(2 * time.Hour) },
			check: func(t testing.TB, _ repo.Verdict) {
				var result string
				rig.Is(t, rig.Must(theirs.Status(t.Context(), room, own.ID()))(t).Result(&result))
				rig.Equal(t, result, "own", "result")
				counted(t, theirs, 0, 0)
			},
		}
	}
}

func cancels(options ...jobs.Option) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{})
		id := rig.Must(theirs.Enqueue(t.Context(), room, 1, options...))(t)
		return stage{
			do:     func(ctx context.Context) error { return mine.Cancel(ctx, room, id) },
			others: func(int) { uses(t, theirs) },
			goesOn: func() { uses(t, theirs) },
			end:    func() { rig.Must(theirs.Enqueue(t.Context(), room, 1))(t) },
			check:  func(t testing.TB, _ repo.Verdict) { counted(t, theirs, 0, 0) },
		}
	}
}

func reschedules(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{})
	id := rig.Must(theirs.Enqueue(t.Context(), room, 1, jobs.After(time.Hour)))(t)
	at := p.now().Add(2 * time.Hour)
	due := func() int { p.later(2 * time.Hour); return works(t, theirs) }
	return stage{
		do:     func(ctx context.Context) error { return mine.Reschedule(ctx, room, id, at) },
		others: func(int) { uses(t, theirs) },
		goesOn: func() { uses(t, theirs) },
		end:    func() { due() },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 1, 0)
			if n := works(t, theirs); n != 0 {
				t.Error("started before its time")
			}
			rig.Equal(t, due(), 1, "jobs")
			counted(t, theirs, 0, 0)
		},
	}
}

func breaksJob(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{})
	rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
	other := job(t, theirs)
	turns := func() { rig.Is(t, job(t, theirs).Return(t.Context())) }
	return stage{
		do:     func(ctx context.Context) error { return mine.BreakJob(ctx, room, other.ID(), other.Token()) },
		others: func(int) { turns() },
		goesOn: turns,
		end:    func() { job(t, theirs) },
		check: func(t testing.TB, _ repo.Verdict) {
			counted(t, theirs, 1, 0)
			rig.Is(t, other.Done(t.Context()), repo.ErrLockLost)
			rig.Equal(t, works(t, theirs), 1, "jobs")
		},
	}
}

// buried is a call about a dead letter, which may die again.
func buried(do func(context.Context, work, string) error) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := processes(t, p, jobs.Config{Retry: jobs.Retry{Attempts: 1}})
		id := rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
		rig.Is(t, job(t, theirs).Fail(t.Context(), errAsked))
		fails := func() {
			p.later(time.Second)
			if j := job(t, theirs); j != nil {
				rig.Is(t, j.Fail(t.Context(), errAsked))
			} else {
				rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
			}
		}
		return stage{
			do:     func(ctx context.Context) error { return do(ctx, mine, id) },
			others: func(int) { uses(t, theirs) },
			goesOn: func() { uses(t, theirs) },
			end:    fails,
			check: func(t testing.TB, _ repo.Verdict) {
				if n := works(t, theirs); n > 1 {
					t.Errorf("%d jobs", n)
				}
				counted(t, theirs, 0, 0)
				if left := len(slices.Collect(maps.Keys(maps.Collect(theirs.Dead(t.Context(), room))))); left > 0 {
					t.Errorf("%d dead letters", left)
				}
			},
		}
	}
}

func forgetsSchedule(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{Poll: time.Millisecond})
	theirs.Periodic("report", jobs.Every(time.Hour), func(time.Time) (string, int, error) { return room, 1, nil })
	listed := func() (n int) {
		for _, err := range theirs.Schedules(t.Context()) {
			rig.Is(t, err)
			n++
		}
		return n
	}
	runs := func() {
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { rig.Is(t, theirs.Run(ctx, func(context.Context, *jobs.Job[int]) error { return nil })) })
		rig.Await(t, "the schedule is there", func() bool { return listed() == 1 })
		end()
		all.Wait()
	}
	runs()
	return stage{
		do:     func(ctx context.Context) error { return mine.ForgetSchedule(ctx, "report") },
		goesOn: func() { p.later(time.Hour); runs() },
		check:  func(t testing.TB, _ repo.Verdict) { rig.Equal(t, listed(), 0, "schedules") },
	}
}

func forgets(t *testing.T, p *place) stage {
	mine, theirs := processes(t, p, jobs.Config{})
	rig.Is(t, theirs.SetLimit(t.Context(), room, 3))
	return stage{
		do:     func(ctx context.Context) error { return mine.Forget(ctx, room) },
		goesOn: func() { rig.Is(t, theirs.SetLimit(t.Context(), room, 4)) },
		end:    func() { rig.Is(t, theirs.Pause(t.Context(), room)) },
	}
}
