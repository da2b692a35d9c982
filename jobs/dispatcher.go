package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
)

// dispatcher is one call of Run: it shares the workers that are free among the
// resources that may have work, which stand in one line and get their turn in
// its order.
type dispatcher struct {
	s       *store
	handler func(ctx context.Context, job *job) error
	stop    context.CancelCauseFunc
	all     sync.WaitGroup
	wake    chan struct{}               // has a value if there may be something to assign
	freed   chan struct{}               // has a value if a worker has nothing to do since all had
	shards  [resources.Shards]seenShard // of the goroutine that looks for work
	looked  bool                        // of the same: it has, once

	mu    sync.Mutex
	free  int              // guarded by mu: workers without a job, less those promised whose job is being ended
	line  []*post          // guarded by mu: resources that may have work
	dead  []*post          // guarded by mu: resources that have room for none, but may have jobs of the dead
	turns int              // guarded by mu: in which of the two lines
	posts map[string]*post // guarded by mu: by name
	moves int              // guarded by mu: how often a job of a resource was enqueued, started, or ended here
	round float64          // guarded by mu: how many starts each resource that wants any should have had, for each of its weight
	found bool             // guarded by mu: a job was started because of a look
	fatal error            // guarded by mu until all workers have returned
}

// post is a resource as a dispatcher knows it; mu of the dispatcher guards it.
type post struct {
	now      resources.Row // as last seen, and reckoned on; Limit is 0 if it was not seen
	inLine   bool          // in one of the lines
	check    bool          // in that of those with jobs of the dead
	looked   bool          // it is in line because of a look
	starting bool          // jobs of it are being started
	again    bool          // it was to be put in line meanwhile
	more     int           // jobs enqueued meanwhile
	less     int           // and jobs that ended
	had      float64       // its starts, for each of its weight; 0 where there are no weights
	among    float64       // the weights, together, among which its last turn was; 0 where there are none
	begun    time.Time     // when the last start of jobs of it began
	taking   int           // how many it was to take
	active   int           // its jobs that are handled here
	moved    int           // moves at the last of this resource
	until    time.Time     // looks leave it alone until then: it is busy, or was left aside
	aside    bool          // until is that of leaveAside
}

// at returns the post of a resource. The caller holds mu.
func (d *dispatcher) at(resource string) *post {
	p := d.posts[resource]
	if p == nil {
		p = &post{now: resources.Row{Name: resource}}
		d.posts[resource] = p
	}
	return p
}

// push puts a resource at the end of the line. The caller holds mu.
func (d *dispatcher) push(p *post) {
	switch {
	case p.starting:
		p.again = true
	case !p.inLine:
		d.comesBack(p)
		if p.inLine = true; p.check {
			d.dead = append(d.dead, p)
		} else {
			d.line = append(d.line, p)
		}
		ddb.Signal(d.wake)
	}
}

// moved notes that this process has moved a job of a resource. The caller holds mu.
func (d *dispatcher) moved(p *post) {
	d.moves++
	p.moved = d.moves
}

// soFar is how many moves there were until now.
func (d *dispatcher) soFar() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.moves
}

// assign gives free workers to the resources in line until ctx is done.
func (d *dispatcher) assign(ctx context.Context) {
	for ctx.Err() == nil {
		if p, r, n, how := d.next(); p != nil {
			d.all.Go(func() { d.serve(ctx, p, r, n, how) })
			continue
		}
		select {
		case <-d.wake:
		case <-d.waitedFor():
		case <-ctx.Done():
		}
	}
}

// next takes the first resource out of a line, with its share of the workers. Those that
// can have nothing but jobs of the dead do not hold up the others: they are looked at
// when there are no others, and in every fourth turn.
// Work that a look has found is left to others who are at it at the same time.
func (d *dispatcher) next() (p *post, r resources.Row, n int, how manner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.free <= 0 || len(d.line)+len(d.dead) == 0 {
		return nil, r, 0, insists
	}
	line := &d.line
	if d.turns++; len(d.dead) > 0 && (len(d.line) == 0 || d.turns%4 == 0) {
		line = &d.dead
	}
	if p, n = d.take(line); p == nil {
		return nil, r, 0, insists
	}
	if p.now.Limit > 0 {
		n = max(min(n, p.now.Limit), 1)
	}
	d.free -= n
	d.counts(p, n)
	p.check = false
	d.begins(p, n)
	if p.looked {
		how = givesWay
	}
	return p, p.now, n, how
}

// begins notes that up to n jobs of a resource are being started. The caller holds mu.
func (d *dispatcher) begins(p *post, n int) {
	p.begun, p.taking = time.Now(), n
	p.inLine, p.starting, p.more, p.less = false, true, 0, 0
}

// started ends what begins noted: n workers were to start jobs of a resource, and
// of them so many did.
func (d *dispatcher) started(p *post, r resources.Row, n, jobs int, how manner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moved(p)
	d.free += n - jobs
	d.counts(p, jobs-n)
	p.active += jobs
	p.starting = false
	p.now = r
	p.now.Queued, p.now.Running = r.Queued+p.more, max(r.Running-p.less, 0)
	if jobs > 0 && p.looked {
		d.found = true
	}
	p.looked = false
	// Another worker may start the next one beside these.
	if jobs > 0 && r.Queued > 0 && !r.Full() || p.again {
		d.push(p)
	}
	p.again, p.more, p.less = false, 0, 0
	if how == follows {
		d.idles()
	}
	ddb.Signal(d.wake)
}

// ended frees the worker of a job; byUs says that the job was ended by this process,
// followed that the end has waited for the next start: where that was refused others
// have the place, and a look tells when there is one again.
func (d *dispatcher) ended(p *post, byUs, followed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moved(p)
	p.active--
	if byUs && !followed {
		p.now.Running = max(p.now.Running-1, 0) // good enough, for the start's condition decides
		p.less++
		if p.now.Queued > 0 {
			d.push(p)
		}
	}
	d.free++
	d.idles()
	ddb.Signal(d.wake)
}

// idles tells who looks for work of a worker that has none. The caller holds mu.
func (d *dispatcher) idles() {
	if d.free > 0 && len(d.line) == 0 { // else it has something to do
		ddb.Signal(d.freed)
	}
}

// occupied reports whether there is no worker for more work; freed tells when there is.
func (d *dispatcher) occupied() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.freed:
	default:
	}
	return d.free <= 0
}

// enqueued learns of a job that this process has enqueued.
func (d *dispatcher) enqueued(resource string) {
	if !d.s.serves(resource) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.at(resource)
	d.moved(p)
	p.more++
	if p.now.Queued++; !d.leaves(p) && (p.now.Limit == 0 || p.now.Running < p.now.Limit) {
		d.push(p)
	}
}

// useful reports whether looking has led to work. While it does not, because
// there is none, or because workers find it by themselves, looks become rare.
func (d *dispatcher) useful() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.found
	d.found = false
	return found
}
