package jobs_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// ends are the ways in which a handler ends its job.
var ends = map[string]func(*jobs.Job[deploy], context.Context) error{
	"Done": (*jobs.Job[deploy]).Done, "Return": (*jobs.Job[deploy]).Return,
	"Fail": func(j *jobs.Job[deploy], ctx context.Context) error { return j.Fail(ctx, nil) },
}

// Whose job is broken learns it, also from an end that finds the job done by another
// before its own deadline.
func TestBreakJob(t *testing.T) {
	b := newBench(t)
	from := time.Now().Truncate(time.Second)
	s, other := b.open(t, jobs.Config{Owner: "till 7"}), b.open(t, jobs.Config{})
	id := put(t, s, "staging", deploy{"v", 1})
	job := rig.Must(s.Next(t.Context(), "staging"))(t)
	for info, err := range other.Jobs(t.Context(), "staging") {
		rig.Is(t, err)
		if info.Since.Before(from) || info.Since.After(time.Now()) || info.Enqueued.Before(from) || info.Enqueued.After(time.Now()) || info.Owner != "till 7" {
			t.Errorf("the job is %+v", info)
		}
	}
	rig.Is(t, other.BreakJob(t.Context(), "staging", id, job.Token()+1), repo.ErrNotHeld)
	rig.Is(t, other.BreakJob(t.Context(), "staging", "nothing", job.Token()), repo.ErrNotFound)
	rig.Is(t, other.Cancel(t.Context(), "staging", id), repo.ErrLocked)
	rig.Is(t, other.BreakJob(t.Context(), "staging", id, job.Token()))
	rig.Is(t, other.BreakJob(t.Context(), "staging", id, job.Token()), repo.ErrNotHeld)
	wantResource(t, s, "staging", 1, 0, 0)
	rig.Is(t, job.Done(t.Context()), repo.ErrLockLost)

	for what, end := range ends {
		job = rig.Must(s.Next(t.Context(), "staging"))(t)
		rig.Is(t, other.BreakJob(t.Context(), "staging", id, job.Token()))
		again := rig.Must(other.Next(t.Context(), "staging"))(t)
		if again.Token() <= job.Token() || again.Attempt() != job.Attempt()+1 {
			t.Errorf("token %d, attempt %d after %d, %d", again.Token(), again.Attempt(), job.Token(), job.Attempt())
		}
		rig.Is(t, again.Done(t.Context()))
		if err := end(job, t.Context()); !errors.Is(err, repo.ErrLockLost) {
			t.Errorf("%s of a job that was broken, and done by another: %v", what, err)
		}
		id = put(t, s, "staging", deploy{"v", 2})
	}
	audit(t, s)
}

// What operators are told where an answer was lost, or a request came twice.
func TestVerdictsOfBreaksAndCancel(t *testing.T) {
	none := func(*testing.T, *semaphore.Permit, *jobs.Job[deploy]) {}
	ended := func(t *testing.T, h *semaphore.Permit, j *jobs.Job[deploy]) {
		rig.Is(t, h.Release(t.Context()))
		rig.Is(t, j.Return(t.Context()))
	}
	extended := func(t *testing.T, h *semaphore.Permit, _ *jobs.Job[deploy]) {
		rig.Is(t, h.Extend(t.Context()))
	}
	for name, c := range map[string]struct {
		kind  fault.Kind
		after func(*testing.T, *semaphore.Permit, *jobs.Job[deploy]) // before the second attempt
		want  error
	}{
		"answer lost":                  {fault.LoseResponse, none, nil},
		"delivered twice":              {fault.Resend, none, nil},
		"never arrived":                {fault.DropRequest, none, nil},
		"never arrived, and extended":  {fault.DropRequest, extended, nil},
		"never arrived, and was ended": {fault.DropRequest, ended, repo.ErrNotHeld},
		"throttled, and was ended":     {fault.Throttle, ended, repo.ErrNotHeld},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			holder := bench{&rig.Rig{Table: b.Table, Client: rig.Client()}}.both(t, jobs.Config{Limit: 2})
			h := rig.Must(holder.Acquire(t.Context(), "staging"))(t)
			id := put(t, holder, "staging", deploy{"v", 1})
			job := rig.Must(holder.Next(t.Context(), "staging"))(t)
			s := b.both(t, jobs.Config{})
			for what, do := range map[string]func() error{
				"BreakPermit": func() error { return s.BreakPermit(t.Context(), "staging", h.ID()) },
				"BreakJob":    func() error { return s.BreakJob(t.Context(), "staging", id, job.Token()) },
			} {
				var n atomic.Int32
				b.Faults(func(op string, _ int, _ []byte) fault.Kind {
					switch {
					case op == "GetItem":
					case n.Add(1) == 1:
						return c.kind
					case n.Load() == 2 && what == "BreakPermit":
						c.after(t, h, job)
					}
					return fault.None
				})
				if c.want != nil && what == "BreakJob" {
					continue
				}
				if err := do(); !errors.Is(err, c.want) {
					t.Errorf("%s: told %v, want %v", what, err, c.want)
				}
				b.Faults(nil)
			}
			if c.want == nil {
				id := put(t, holder, "other", deploy{"v", 2})
				b.Nth("TransactWriteItems", 0, c.kind)
				if err := s.Cancel(t.Context(), "other", id); err != nil {
					t.Errorf("Cancel: %v", err)
				}
				b.Faults(nil)
				wantResource(t, holder, "other", 0, 0, 0)
			}
			audit(t, holder)
		})
	}
}

// A job that waits is removed wherever it stands in line.
func TestCancel(t *testing.T) {
	b := newBench(t)
	s := b.short(t)
	id := put(t, s, "staging", deploy{"v", 1})
	own := put(t, s, "staging", deploy{"v", 2}, jobs.WithID("message 7"))
	rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil)) // it stands elsewhere now
	for _, id := range []string{id, own} {
		rig.Is(t, s.Cancel(t.Context(), "staging", id))
		rig.Is(t, s.Cancel(t.Context(), "staging", id), repo.ErrNotFound)
	}
	rig.Is(t, s.Cancel(t.Context(), "staging", ""), repo.ErrKey)
	wantResource(t, s, "staging", 0, 0, 0)
	if again := put(t, s, "staging", deploy{"v", 2}, jobs.WithID(own)); again != own {
		t.Errorf("enqueued under %q", again)
	}
	wantResource(t, s, "staging", 0, 0, 0) // the id is remembered
	audit(t, s)
}

// A paused resource gives out nothing, and what runs goes on.
func TestPause(t *testing.T) {
	b := newBench(t)
	s := b.both(t, jobs.Config{Limit: 3})
	other := b.both(t, jobs.Config{})
	h := rig.Must(s.Acquire(t.Context(), "staging"))(t)
	put(t, s, "staging", deploy{"v", 1})
	job := rig.Must(s.Next(t.Context(), "staging"))(t)
	from := time.Now().Add(-time.Second)
	for range 2 { // a resource that is paused stays so
		rig.Is(t, other.Pause(t.Context(), "staging"))
	}
	r := rig.Must(s.Resource(t.Context(), "staging"))(t)
	if r.Paused.Before(from) || r.Paused.After(time.Now().Add(time.Second)) {
		t.Errorf("paused since %v", r.Paused)
	}
	put(t, s, "staging", deploy{"v", 2})
	_, err := s.TryAcquire(t.Context(), "staging")
	var busy *semaphore.BusyError
	if rig.Is(t, err, jobs.ErrBusy, repo.ErrLocked); !errors.As(err, &busy) || !busy.Paused.Equal(r.Paused) {
		t.Errorf("refused by %v", err)
	}
	var none *jobs.BusyError
	_, err = s.Next(t.Context(), "staging")
	if rig.Is(t, err, jobs.ErrBusy, repo.ErrLocked); !errors.As(err, &none) || !none.Paused.Equal(r.Paused) {
		t.Errorf("refused by %v", err)
	}
	rig.Is(t, s.SetLimit(t.Context(), "staging", 5)) // goes on with no pause
	_, err = s.TryAcquire(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrBusy)
	rig.Is(t, h.Extend(t.Context()))
	rig.Is(t, job.Done(t.Context()))
	rig.Is(t, h.Release(t.Context()))
	audit(t, s)
	rig.Is(t, other.Resume(t.Context(), "staging"))
	rig.Is(t, other.Resume(t.Context(), "staging"))
	next := rig.Must(s.Next(t.Context(), "staging"))(t)
	if next.Token() <= job.Token() || next.Token() > time.Now().Add(time.Hour).UnixMicro() {
		t.Errorf("token %d after %d", next.Token(), job.Token())
	}
	rig.Is(t, next.Done(t.Context()))
	// One that nobody has used.
	rig.Is(t, s.Pause(t.Context(), "new"))
	_, err = s.TryAcquire(t.Context(), "new")
	rig.Is(t, err, jobs.ErrBusy)
	rig.Is(t, s.Resume(t.Context(), "new"))
	rig.Is(t, rig.Must(s.TryAcquire(t.Context(), "new"))(t).Release(t.Context()))
	audit(t, s)
}

// A dead handler's job is not taken over while its resource is paused, and Run goes on
// with it after that.
func TestRunOfAPausedResource(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Lease: 3 * time.Second, ClockSkew: -1, Poll: 20 * time.Millisecond})
	put(t, s, "staging", deploy{"v", 1})
	dead := rig.Must(s.Next(t.Context(), "staging"))(t)
	rig.Is(t, s.Pause(t.Context(), "staging"))
	later := b.open(t, jobs.Config{Lease: 3 * time.Second, ClockSkew: -1})
	later.SetClock(time.Minute) // the lease is over by its clock
	_, err := later.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrBusy)
	rig.Is(t, dead.Return(t.Context()))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := make(chan struct{})
	ended := make(chan error, 1)
	var resumed atomic.Bool
	go func() {
		ended <- s.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
			if !resumed.Load() {
				t.Error("a job of a paused resource was started")
			}
			close(ran)
			return nil
		})
	}()
	b.Count.Reset()
	rig.Await(t, "some looks have found nothing to start", func() bool { return b.Count.Count("Query") > 64 })
	resumed.Store(true)
	rig.Is(t, s.Resume(t.Context(), "staging"))
	<-ran
	rig.Await(t, "it is done", func() bool { return rig.Must(s.Resource(t.Context(), "staging"))(t).Running == 0 })
	stop()
	rig.Is(t, <-ended)
}

// Close gives everything back and ends whoever waits.
func TestClose(t *testing.T) {
	b := newBench(t)
	s, other := b.both(t, jobs.Config{Limit: 2}), b.both(t, jobs.Config{})
	h := rig.Must(s.Acquire(t.Context(), "staging"))(t)
	id := put(t, s, "staging", deploy{"v", 1})
	job := rig.Must(s.Next(t.Context(), "staging"))(t)
	put(t, s, "prod", deploy{"v", 2})
	inside, ended := make(chan struct{}), make(chan error, 2)
	go func() {
		ended <- s.Run(t.Context(), func(ctx context.Context, _ *jobs.Job[deploy]) error {
			close(inside)
			<-ctx.Done()
			rig.Is(t, context.Cause(ctx), jobs.ErrClosed)
			return ctx.Err()
		})
	}()
	<-inside
	b.Count.Reset()
	go func() {
		_, err := s.Acquire(t.Context(), "staging")
		ended <- err
	}()
	rig.Await(t, "somebody waits", func() bool { return b.Count.Count("UpdateItem") > 0 })
	b.Count.OnRequest(func(op string, body []byte) { // the work ends before others can have its place
		if text := string(body); op == "UpdateItem" && strings.Contains(text, "REMOVE") && strings.Contains(text, h.ID()) && h.Context().Err() == nil ||
			op == "TransactWriteItems" && strings.Contains(text, strconv.FormatInt(job.Token(), 10)) && job.Context().Err() == nil {
			t.Errorf("given back while its holder goes on: %s", text)
		}
	})
	rig.Is(t, s.Close(t.Context()))
	if first, second := <-ended, <-ended; !errors.Is(errors.Join(first, second), jobs.ErrClosed) || !errors.Is(errors.Join(first, second), semaphore.ErrClosed) {
		t.Errorf("Run and Acquire end with %v and %v", first, second)
	}
	rig.Is(t, rig.Ended(h.Context(), t), semaphore.ErrClosed)
	rig.Is(t, rig.Ended(job.Context(), t), jobs.ErrClosed)
	rig.Is(t, job.Done(t.Context()), jobs.ErrClosed)
	rig.Is(t, h.Release(t.Context()))
	wantResource(t, other, "staging", 1, 0, 0)
	wantResource(t, other, "prod", 1, 0, 0)
	again := rig.Must(other.Next(t.Context(), "staging"))(t)
	if again.ID() != id || again.Attempt() != 1 {
		t.Errorf("the next job is %s in attempt %d", again.ID(), again.Attempt())
	}
	_, err := s.TryAcquire(t.Context(), "staging")
	rig.Is(t, err, semaphore.ErrClosed)
	_, err = s.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrClosed)
	rig.Is(t, s.Run(t.Context(), func(context.Context, *jobs.Job[deploy]) error { return nil }), jobs.ErrClosed)
	rig.Is(t, s.Close(t.Context()))
	audit(t, other)
}

// What could not be given back is named, and a later Close gives it back.
func TestCloseThatFails(t *testing.T) {
	b := newBench(t)
	s := b.both(t, jobs.Config{})
	h := rig.Must(s.Acquire(t.Context(), "staging"))(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Close(over)
	var left *repo.CloseError
	if !errors.As(err, &left) || left.Token != h.Token() {
		t.Errorf("told %v", err)
	}
	rig.Is(t, s.Close(t.Context()))
	wantResource(t, b.both(t, jobs.Config{}), "staging", 0, 0, 0)
}

// A dead letter tells when it was enqueued, and when it died.
func TestDeadLettersTellSinceWhen(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 1}})
	from := time.Now().Add(-time.Millisecond)
	put(t, s, "staging", deploy{"v", 1})
	rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
	for d, err := range s.Dead(t.Context(), "staging") {
		rig.Is(t, err)
		if d.Enqueued.Before(from) || d.Died.Before(d.Enqueued) || d.Died.After(time.Now().Add(time.Millisecond)) {
			t.Errorf("the dead letter is %+v", d)
		}
	}
}
