package semaphore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// errStopped is the cause of a handler's context when Run is told to end.
var errStopped = errors.New("the dispatcher stops")

// Run handles the jobs of all resources until ctx is done, Config.Workers at
// once; any number of processes may do so. handler returns nil for a job that
// is done and an error for one that failed; a panic is a failure too. Its
// context ends when the job is lost, or with ctx. A job whose handler returns
// an error after that is given back to be started again, its attempt not
// counted.
//
// Every resource gets its turn: after one job the next resource with work comes
// first. When there is no work, Run looks for some at times, at first after
// Wait.Min and in the end every Config.Poll; one look is 16 requests, and more
// for many resources.
//
// Run returns after all handlers have: nil when ctx is done, or what makes it
// pointless to go on, such as ErrNoTable, ErrDenied, ErrSchema or ErrLimit.
func (s *Semaphore[J]) Run(ctx context.Context, handler func(ctx context.Context, job *Job[J]) error) error {
	if handler == nil {
		return fmt.Errorf("%w: the handler is nil", repo.ErrConfig)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &dispatcher[J]{s: s, handler: handler, stop: cancel, known: map[string]*Resource{}, waiting: map[string]bool{}, fresh: map[string]bool{}, active: map[string]int{}, looked: map[string]time.Time{}}
	d.wake = sync.NewCond(&d.mu)
	defer context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.wake.Broadcast()
	})()
	var all sync.WaitGroup
	for range s.cfg.Workers {
		all.Go(func() { d.work(ctx) })
	}
	d.look(ctx)
	all.Wait()
	return d.fatal
}

// dispatcher is one call of Run.
type dispatcher[J any] struct {
	s       *Semaphore[J]
	handler func(ctx context.Context, job *Job[J]) error
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	wake    *sync.Cond           // of mu: ready has grown, or Run ends
	ready   []string             // guarded by mu: resources that may have work, in the order of their turns
	waiting map[string]bool      // guarded by mu: those in ready
	known   map[string]*Resource // guarded by mu: what was last seen of a resource that nobody works on
	looked  map[string]time.Time // guarded by mu: when a busy resource was last looked at for dead holders
	fresh   map[string]bool      // guarded by mu: those in ready because of a look, not of a job that was done
	active  map[string]int       // guarded by mu: workers on a resource
	found   bool                 // guarded by mu: a job was started because of a look
	fatal   error                // guarded by mu until all workers have returned
}

// look finds resources with work, again and again.
func (d *dispatcher[J]) look(ctx context.Context) {
	first := min(d.s.cfg.Wait.Min, d.s.cfg.Poll)
	pause := first
	for ctx.Err() == nil {
		if err := d.survey(ctx); err != nil && ctx.Err() == nil {
			d.trouble("looking for work", "", err)
		}
		if d.useful() {
			pause = first
		}
		ddb.Pause(ctx, pause)
		pause = min(2*pause, d.s.cfg.Poll)
	}
}

// useful reports whether looking has led to work. While it does not, because
// there is none, or because workers find it by themselves, looks become rare.
func (d *dispatcher[J]) useful() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.found
	d.found = false
	return found
}

func (d *dispatcher[J]) survey(ctx context.Context) error {
	for r, err := range d.s.Resources(ctx) {
		if err != nil {
			return err
		}
		if d.worthwhile(r) {
			d.push(r, true)
		}
	}
	return nil
}

// worthwhile reports whether a resource may have a job to start, or a running
// one whose holder is dead, which only a look at its jobs can tell.
func (d *dispatcher[J]) worthwhile(r Resource) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active[r.Name] >= r.Limit {
		return false // its workers go on by themselves
	}
	if r.Queued > 0 && r.Running < r.Limit {
		return true
	}
	if r.Running == 0 {
		delete(d.looked, r.Name)
		return false
	}
	if time.Since(d.looked[r.Name]) < d.s.cfg.Lease/3 {
		return false
	}
	d.looked[r.Name] = time.Now()
	return true
}

// push puts a resource at the end of those that may have work; fresh says that
// a look has found it.
func (d *dispatcher[J]) push(r Resource, fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[r.Name] = &r
	if !d.waiting[r.Name] {
		d.waiting[r.Name], d.fresh[r.Name] = true, fresh
		d.ready = append(d.ready, r.Name)
		d.wake.Signal()
	}
}

// pop waits for the next resource; nil when Run ends.
func (d *dispatcher[J]) pop(ctx context.Context) (r *Resource, fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ctx.Err() == nil {
		if len(d.ready) > 0 {
			name := d.ready[0]
			d.ready = d.ready[1:]
			r, fresh = d.known[name], d.fresh[name]
			delete(d.waiting, name)
			delete(d.known, name)
			delete(d.fresh, name)
			d.active[name]++
			return r, fresh
		}
		d.wake.Wait()
	}
	return nil, false
}

func (d *dispatcher[J]) work(ctx context.Context) {
	for {
		r, fresh := d.pop(ctx)
		if r == nil {
			return
		}
		d.serve(ctx, r, fresh)
		d.leave(r.Name)
	}
}

// leave ends what pop began.
func (d *dispatcher[J]) leave(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active[name]--; d.active[name] == 0 {
		delete(d.active, name)
	}
}

// serve starts a job of a resource, if there is one, and sees it to its end.
func (d *dispatcher[J]) serve(ctx context.Context, r *Resource, fresh bool) {
	job, err := d.s.next(ctx, r)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, ErrNoWork) && !errors.Is(err, ErrBusy) {
			d.trouble("starting a job", r.Name, err)
		}
		return
	}
	if fresh {
		d.mu.Lock()
		d.found = true
		d.mu.Unlock()
	}
	if r.Queued > 0 && r.Running < r.Limit {
		d.push(*r, false) // another worker may start the next one beside this
	}
	if d.handle(ctx, job) {
		// What was known of the resource, less this job: good enough, for the
		// start's condition decides.
		if r.Running--; r.Queued > 0 {
			d.push(*r, false)
		}
	}
}

// handle runs one job to its end; true if it was ended by this process.
func (d *dispatcher[J]) handle(ctx context.Context, job *Job[J]) bool {
	held, cancel := context.WithCancelCause(job.Context())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(errStopped) })()
	err := errStopped
	if ctx.Err() == nil { // it may have ended while the job was started
		err = call(held, d.handler, job)
	}
	end := job.Done
	switch {
	case err == nil:
	case ctx.Err() != nil:
		end = job.Return
	default:
		d.s.core.Observe.Log.Warn("dynahold: a job failed", slog.String("resource", job.resource),
			slog.String("job", job.line.id), slog.Int("attempt", job.Attempt()), slog.Any("error", err))
		cause := err
		end = func(ctx context.Context) error { return job.Fail(ctx, cause) }
	}
	backoff := ddb.Backoff{Min: d.s.cfg.Wait.Min, Max: d.s.cfg.Wait.Max}
	for err = end(ctx); err != nil && !gone(err) && !errors.Is(err, repo.ErrReleased) && !job.keep.Expired(); err = end(ctx) {
		// Refused for now, by throttling for example: it is ours until its deadline.
		ddb.Pause(context.WithoutCancel(ctx), backoff.Next(time.Now(), time.Time{}))
	}
	if err != nil && !errors.Is(err, repo.ErrReleased) { // a handler may end its job itself
		d.trouble("ending job "+job.line.id, job.resource, err)
		return false
	}
	return true
}

// call runs the handler in a goroutine of its own, and turns a panic, and the end
// of that goroutine, into an error.
func call[J any](ctx context.Context, handler func(context.Context, *Job[J]) error, job *Job[J]) error {
	end := make(chan error, 1)
	go func() {
		err := errors.New("the handler ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
			}
			end <- err
		}()
		err = handler(ctx, job)
	}()
	return <-end
}

// trouble logs an error, and ends Run if it makes no sense to go on.
func (d *dispatcher[J]) trouble(doing, resource string, err error) {
	d.s.core.Observe.Log.Error("dynahold: "+doing, slog.String("resource", resource), slog.Any("error", err))
	if gone(err) || resource != "" && errors.Is(err, repo.ErrSchema) {
		return // it concerns one job, or the rows of one resource
	}
	for _, hopeless := range []error{repo.ErrNoTable, repo.ErrDenied, repo.ErrSchema, repo.ErrConfig, ErrLimit} {
		if errors.Is(err, hopeless) {
			d.mu.Lock()
			d.fatal = errors.Join(d.fatal, err)
			d.mu.Unlock()
			d.stop(err)
			return
		}
	}
}
