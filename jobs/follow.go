package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
)

// Who ends a job starts the next one of the resource in the same transaction. Its place is
// never free, so nobody fights about it, and one transaction meets others half as often as
// two. The end waits for one reading of the line, or for a few where others take what was
// read, and never longer than for a transaction under way. A process that dies meanwhile
// has done work that is done again: that is so for as long as an end has no answer, too.

// leastLeft is how much of a lease is left where an end waits: it is sent, and sent again,
// long before others take the job over.
const leastLeft = 4 * overtake

// following is what is known of a resource when a handler of one of its jobs has returned.
type following struct {
	now        resources.Row
	left       time.Duration // of the job's lease
	free       int           // workers
	stopping   bool          // no more jobs are started
	shared     bool          // weights say which resource has the next turn
	othersWait bool          // other resources have work and no worker
	starting   bool          // jobs of this one are being started
	aside      bool          // it cannot be handled for now
}

// reason is why an end is sent at once.
type reason string

const (
	waits      reason = "" // it is not
	stops      reason = "nothing more is started"
	leaseEnds  reason = "the lease ends soon"
	byWeight   reason = "the next turn is given by weights"
	othersTurn reason = "the next turn is another resource's"
	workerFree reason = "another worker starts the next job without it"
	underWay   reason = "the next job is being started"
	oneAtATime reason = "with a limit of one other processes would never have a turn"
	noneWaits  reason = "no job waits"
	isPaused   reason = "the resource is paused"
	isAside    reason = "the resource is left aside"
)

// judge says whether the end of a job waits for the start of the next one.
func (f following) judge() reason {
	switch {
	case f.stopping:
		return stops
	case f.left < leastLeft:
		return leaseEnds
	case f.shared:
		return byWeight
	case f.othersWait:
		return othersTurn
	case f.free != 0: // less than none: an end before this one has no answer yet
		return workerFree
	case f.starting:
		return underWay
	case f.now.Limit <= 1:
		return oneAtATime
	case f.now.Queued == 0:
		return noneWaits
	case !f.now.Paused.IsZero():
		return isPaused
	case f.aside:
		return isAside
	}
	return waits
}

// follow begins to start the job that comes after one of this process, of whose lease so
// much is left. The end waits until the context that it returns is over; nil: it does not.
func (d *dispatcher) follow(ctx context.Context, p *post, left time.Duration) (hold context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	alone := len(d.dead) == 0 && !slices.ContainsFunc(d.line, func(o *post) bool { return o != p })
	f := following{now: p.now, left: left, free: d.free, stopping: ctx.Err() != nil, shared: len(d.s.cfg.Resources) > 0,
		othersWait: !alone, starting: p.starting, aside: d.leaves(p)}
	if f.judge() != waits {
		return nil
	}
	d.line = nil // it had this resource at most
	d.free--     // the worker is free in a moment, and is promised
	d.begins(p, 1)
	p.now.Running = max(p.now.Running-1, 0)
	r := p.now
	hold, release := context.WithTimeout(ctx, overtake)
	d.all.Go(func() {
		defer release()
		d.serve(ctx, p, r, 1, follows)
	})
	return hold
}

// holdKey is where the context of an end has that which it waits for.
type holdKey struct{}

// heldIn is what an end waits for; nil: for nothing.
func heldIn(ctx context.Context) <-chan struct{} {
	if hold, _ := ctx.Value(holdKey{}).(context.Context); hold != nil {
		return hold.Done()
	}
	return nil
}

// held is how many ends wait for a start. The caller holds mu.
func (st *localResource) held() (n int) {
	for _, c := range st.waiting {
		if c.held != nil {
			n++
		}
	}
	return n
}

// ending is held for who does not hold mu. The rows, and the counter, of these jobs say that
// they run.
func (st *localResource) ending() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.held()
}

// holdAgain takes ends out of a transaction whose start was refused: they wait for the next
// try. It returns the other changes.
func (st *localResource) holdAgain(f *flight, all []*change) []*change {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.DeleteFunc(all, func(c *change) bool {
		if c.held == nil || c.left {
			return false
		}
		c.flight = nil
		f.there--
		st.waiting = append(st.waiting, c)
		return true
	})
}
