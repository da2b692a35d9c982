package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Run handles the jobs of all resources of the table, or of Config.Resources, until ctx is done,
// Config.Workers at once; any number of processes may do so. Those that another J has enqueued
// there are handled too: see [Queue]. handler returns nil for a job that
// is done and an error for one that failed; a panic is a failure too. Its
// context has the values of ctx, and ends with ctx, when the job is lost, and
// after Config.HandlerTimeout. A job whose handler returns an error after the
// end of ctx is given back to be started again, its attempt not counted.
//
// Every resource gets its turn: the workers that are free are shared among the
// resources with work, or among those of Config.Resources by their weights. Jobs that a resource has room for are started together, up
// to as many as its share, with one query and one transaction; ends of jobs share
// transactions, too. A job that this process has enqueued is started at once. When
// there is no work, Run looks for some at times, at first after Wait.Min and in
// the end every Config.Poll, a random share of the pause sooner: so long at most a job
// waits that another process has enqueued, or whose time has come, on average about two
// fifths of it. One look is one request, and one more for each of 16 shards where jobs are
// queued, or run, or were enqueued lately; one more for each where the time of a job has
// come, and every 30 s where jobs wait for theirs.
//
// What is broken does not stop the rest: a resource whose row cannot be read is
// left aside for a lease, a job that cannot be read goes to the dead letters. Both
// are logged and counted (dynahold.skipped).
//
// Run returns after all handlers have, but for those that were left behind after
// their HandlerTimeout, and 3 s at most for the ends of their jobs: nil when ctx
// is done, ErrClosed after [Queue.Close], or what makes it pointless to go on:
// ErrNoTable, ErrDenied, ErrConfig, or ErrSchema of the table itself.
func (q *Queue[J]) Run(ctx context.Context, handler func(ctx context.Context, job *Job[J]) error) error {
	if handler == nil {
		return fmt.Errorf("%w: the handler is nil", repo.ErrConfig)
	}
	if err := q.s.checkPeriodics(); err != nil {
		return err
	}
	return q.s.run(ctx, func(ctx context.Context, j *job) error { return handler(ctx, &Job[J]{j}) })
}

func (s *store) run(ctx context.Context, handler func(ctx context.Context, job *job) error) error {
	ctx, over, err := s.open.Begin(ctx)
	if err != nil {
		return err
	}
	defer over()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &dispatcher{s: s, handler: handler, stop: cancel, free: s.cfg.Workers, posts: map[string]*post{}, wake: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
	dispatchers.Store(d, nil)
	defer dispatchers.Delete(d)
	d.all.Go(func() { d.assign(ctx) })
	d.look(ctx)
	d.all.Wait()
	// The cause may be that of another semaphore, of which ctx is a permit's.
	if d.fatal == nil && errors.Is(context.Cause(ctx), ErrClosed) && s.open.Context().Err() != nil {
		return ErrClosed
	}
	return d.fatal
}

// look finds resources with work, again and again.
func (d *dispatcher) look(ctx context.Context) {
	first := min(d.s.cfg.Wait.Min, d.s.cfg.Poll)
	pause := first
	for ctx.Err() == nil {
		if err := d.findWork(ctx); err != nil && ctx.Err() == nil {
			d.trouble(ctx, "looking for work", "", err)
		}
		// What comes again and again is met about every second time, whatever its pace.
		if d.useful() {
			pause = max(pause/4, first)
		}
		if d.occupied() {
			// Nobody could take what a look finds, which then is for telemetry alone.
			d.s.table.Core.SleepOr(ctx, d.s.cfg.Poll, d.freed)
		} else {
			d.s.table.Core.Sleep(ctx, pause-rand.N(pause/2+1)) // not all processes at once
		}
		pause = min(2*pause, d.s.cfg.Poll)
	}
}

// leaveAside keeps a resource that cannot be handled from being looked at for
// a while: there may be many, and each look would end in the same error.
func (d *dispatcher) leaveAside(ctx context.Context, resource string, err error) {
	d.mu.Lock()
	p := d.at(resource)
	already := d.leaves(p)
	if !already {
		p.aside, p.until = true, d.s.table.Clock().Add(d.s.cfg.Lease)
	}
	d.mu.Unlock()
	if already {
		return
	}
	d.s.skipped(ctx, "resource", telemetry.EventAside, "a resource is left aside for a while", resource, slog.Duration("for", d.s.cfg.Lease), slog.Any("error", err))
}

// serve starts jobs of a resource, up to n, and sees each to its end.
func (d *dispatcher) serve(ctx context.Context, p *post, r resources.Row, n int, how manner) {
	var jobs []*job
	err := orEnded(func() (err error) {
		if r.Limit == 0 { // no more than the name is known
			r, err = d.s.table.Read(ctx, r.Name)
		}
		if err == nil {
			jobs, err = d.s.startSome(ctx, &r, n, how)
		}
		return err
	})
	d.started(p, r, n, len(jobs), how)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNoWork) && !errors.Is(err, ErrBusy) {
		d.trouble(ctx, "starting a job", r.Name, err)
	}
	for _, job := range jobs {
		d.all.Go(func() { d.handle(ctx, p, job) })
	}
}

// handle runs one job to its end, and frees its worker.
func (d *dispatcher) handle(ctx context.Context, p *post, job *job) {
	outside := ctx
	ctx, span := d.s.table.Core.Observe.Handling(ctx, telemetry.Job, "Handle", resources.Text(job.row.row, aTrace), job.Resource)
	end, failed := d.work(ctx, job)
	failed = nesting.Returned(failed) // an outcome that is unknown is that of another call
	defer span.End(&failed)
	var hold context.Context
	if end != nil {
		hold = d.follow(outside, p, job.lease.Left())
		ctx = context.WithValue(ctx, holdKey{}, hold)
	}
	d.ended(p, end != nil && d.finish(ctx, job, end), hold != nil)
}

// work runs the handler of a job, and returns how to end it; nil: it is over. failed is
// the handler's error.
func (d *dispatcher) work(ctx context.Context, job *job) (end func(context.Context) error, failed error) {
	end = job.Return // for ctx may have ended while the job was started
	if failed = d.s.read(ctx, job); failed != nil {
		end = func(ctx context.Context) error { return job.Fail(ctx, failed) }
	} else if failed = ddb.CtxError(ctx); failed == nil {
		failed = d.call(ctx, job)
		switch {
		case errors.Is(failed, errLeftBehind):
			d.s.open.Remove(job) // it is over, or will be by itself
			return nil, failed
		case failed == nil:
			end = job.Done
		case ctx.Err() == nil:
			d.s.table.Core.Observe.Event(ctx, slog.LevelWarn, telemetry.EventFailed, "a job failed", slog.String("resource", job.resource),
				slog.String("job", job.row.id), slog.Int("attempt", job.Attempt()), slog.String("error", errorText(failed)))
			end = func(ctx context.Context) error { return job.Fail(ctx, failed) }
		}
	}
	return end, failed
}

// finish ends a job; true if that was by this process.
func (d *dispatcher) finish(ctx context.Context, job *job, end func(context.Context) error) bool {
	grace, cancel := ddb.Cleaning(ctx) // for all tries together
	defer cancel()
	backoff := d.s.table.Backoff()
	try := func() error { return end(grace) }
	err := orEnded(try)
	for ; err != nil && !gone(err) && !job.endedByUs() && !job.lease.Expired() && grace.Err() == nil; err = orEnded(try) {
		// Refused for now, by throttling for example: it is ours until its deadline.
		ddb.Sleep(grace, backoff.Next(time.Now(), time.Time{}))
	}
	if err != nil && (gone(err) || !job.endedByUs()) {
		d.trouble(ctx, "ending job "+job.row.id, job.resource, err)
		return false
	}
	return true
}

// orEnded is what do returns, or that the client has ended the goroutine in which it was called:
// what others wait for behind it, as a worker or an answer, must come all the same.
func orEnded(do func() error) (err error) {
	ended := goroutine.Apart(func() { err = do() })
	return cmp.Or(ended, err)
}

var (
	// errTimeout is the cause of a handler's context after Config.HandlerTimeout.
	errTimeout = fmt.Errorf("the handler's time is over: %w", context.DeadlineExceeded)
	// errLeftBehind: a handler has not returned although its job is not its any
	// more.
	errLeftBehind = errors.New("the handler does not return")
)

// call runs the handler in a goroutine of its own.
func (d *dispatcher) call(ctx context.Context, job *job) error {
	held, cancel := ddb.Merge(job.inside(ctx), job.Context())
	defer cancel()
	limit := cmp.Or(job.row.timeout, d.s.cfg.HandlerTimeout)
	if limit > 0 {
		timed, end := context.WithTimeoutCause(held, limit, errTimeout)
		defer end()
		held = timed
	}
	end := contain("the handler", func() error { return d.handler(held, job) })
	if limit == 0 {
		return <-end
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case err := <-end:
		return err
	case <-over.C:
	}
	// From now on it is not renewed: if the handler does not return either, its
	// lease ends, and others take it over.
	job.lease.Forget(errTimeout)
	d.s.table.Core.Observe.Event(ctx, slog.LevelError, telemetry.EventHandler, "a handler does not return in time",
		slog.String("resource", job.resource), slog.String("job", job.row.id), slog.Duration("limit", limit))
	lost := time.NewTimer(job.lease.Left())
	defer lost.Stop()
	select {
	case err := <-end:
		return err
	case <-lost.C:
		d.s.table.Core.Observe.Skipped(ctx, "handler")
		return errLeftBehind
	}
}

// trouble logs an error, leaves its resource aside, or ends Run if it makes no
// sense to go on.
func (d *dispatcher) trouble(ctx context.Context, doing, resource string, err error) {
	d.s.table.Core.Observe.Event(ctx, slog.LevelError, telemetry.EventDispatcher, doing, slog.String("resource", resource), slog.Any("error", err))
	if gone(err) {
		return // it concerns one job
	}
	if resource != "" && errors.Is(err, repo.ErrSchema) && !errors.Is(err, errNoTransactions) {
		d.leaveAside(ctx, resource, err)
		return
	}
	for _, hopeless := range []error{repo.ErrNoTable, repo.ErrDenied, repo.ErrSchema, repo.ErrConfig} {
		if errors.Is(err, hopeless) {
			d.mu.Lock()
			d.fatal = errors.Join(d.fatal, err)
			d.mu.Unlock()
			d.stop(err)
			return
		}
	}
}
