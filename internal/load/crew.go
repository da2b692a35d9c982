package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// crew is all the processes of one run. Its method run is the part that
// happens in virtual time.
type crew struct {
	workload  Workload
	contender Contender
	table     string
	from      *dynamodb.Client // whose options the clients take over
	who       aws.Credentials
	virtual   bool
	transport func() aws.HTTPClient
	tally     *tally
	service   *service // nil: nothing is added to what the engine does

	// outer is the caller's context. In virtual time nobody may wait for it:
	// its channel is from outside, and waiting for it would stop the clock.
	outer context.Context // see above

	window  *window
	workers []*worker
	endings endings
	// Of workloads that hold items: how many are inside each, and how often somebody
	// came in while another was.
	within   []atomic.Int32
	overlaps atomic.Int64
	arrivals chan struct{} // of an open load; nil: workers wait for none
	turn     atomic.Int64  // the sharer, plus one, whose change was acknowledged last; 0: none yet

	// adrift are requests whose callers have gone: a bubble of virtual time
	// must not end before them.
	adrift sync.WaitGroup

	// For whoever watches from outside.
	done atomic.Int64 // share of the run that is over
	life atomic.Int64 // grows with requests and with time
}

const (
	perMille = 1000
	// beat is how often the crew looks after the time and its caller.
	beat = 20 * time.Millisecond
	// grace is for changes that are under way when the measured time ends.
	// Then they are cancelled: something has got stuck.
	grace = 30 * time.Second
)

// errStuck is the cause of the end of what outlasts the grace.
var errStuck = errors.New("load: the change was still under way 30 s after the end")

// settle waits for requests that nobody waits for, and in virtual time, where that costs
// nothing, for those that calls send beside themselves: a bubble must not end before them.
func (c *crew) settle() {
	if c.virtual {
		time.Sleep(grace)
	}
	c.adrift.Wait()
}

// run works until the measured time is over and everything has ended that was
// begun in it.
func (c *crew) run() error {
	defer c.settle()
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), endingsKey{}, &c.endings))
	defer cancel(nil)
	n, _ := c.sharers()
	c.window, c.within = newWindow(c.workload, n), make([]atomic.Int32, c.workload.Items)
	if c.virtual && (c.workload.Touches > 1 || c.workload.Makes || c.workload.Partition || c.workload.Every > 0) {
		c.service = newService(c.workload.Partition)
	}
	for p := range c.workload.Processes {
		transport := &wire{crew: c, next: c.transport(), delays: newDelays(c.workload.Latency, c.workload.Seed, p)}
		change, err := c.contender.Open(ctx, newClient(c.from, transport, c.who), c.table)
		if err != nil {
			return fmt.Errorf("opening: %w", err)
		}
		for range c.workload.Workers {
			n := len(c.workers)
			c.workers = append(c.workers, newWorker(c, n, source(c.workload.Seed, streamItems, n), change))
		}
	}
	c.window.begin(c.workload)
	var all sync.WaitGroup
	if c.workload.Every > 0 {
		c.arrivals = make(chan struct{})
		all.Go(func() { c.arrive(ctx) })
	}
	for _, w := range c.workers {
		all.Go(func() { w.work(ctx) })
	}
	finished := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { c.watch(finished, cancel) })
	all.Wait()
	c.endings.run()
	close(finished)
	watch.Wait()
	return c.outer.Err()
}

// arrive lets changes come at random moments, until the measured time is over.
func (c *crew) arrive(ctx context.Context) {
	defer close(c.arrivals)
	rng := source(c.workload.Seed, streamArrivals, 0)
	for at := time.Now(); ; {
		at = at.Add(time.Duration(rng.ExpFloat64() * float64(c.workload.Every)))
		if !sleep(ctx, time.Until(at)) || c.window.late() >= 0 {
			return
		}
		c.arrivals <- struct{}{}
	}
}

// endings are what is called when the changes of a run are over.
type endings struct {
	mu  sync.Mutex
	all []func() // guarded by mu
}

type endingsKey struct{}

// AtEnd has a contender's process end what it has started: the context is that of
// Contender.Open. The run waits for it.
func AtEnd(ctx context.Context, end func()) {
	e := ctx.Value(endingsKey{}).(*endings)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, end)
}

func (e *endings) run() {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all sync.WaitGroup
	for _, end := range e.all {
		all.Go(end)
	}
	all.Wait()
}

// watch cancels what takes too long or is not wanted any more. Then it ends:
// as long as it looks at the clock, the clock moves, and the runtime finds no
// deadlock among the others.
func (c *crew) watch(finished <-chan struct{}, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		c.life.Add(1)
		c.done.Store(int64(perMille * c.window.done()))
		if err := c.outer.Err(); err != nil {
			cancel(err)
			return
		}
		if c.window.late() > grace {
			cancel(errStuck)
			return
		}
	}
}
