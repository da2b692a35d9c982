package load

import (
	"fmt"
	"runtime/debug"
	"time"
)

// frozen is how long nothing may happen in a run before it counts as hung.
const frozen = time.Minute

// observe watches the run in real time, from outside of the bubble, until the
// returned function is called.
func (c *crew) observe(o Options) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		last, since := int64(-1), time.Now()
		for {
			select {
			case <-tick.C:
			case <-quit:
				return
			}
			if o.Progress != nil {
				o.Progress(float64(c.done.Load()) / perMille)
			}
			if life := c.life.Load(); life != last {
				last, since = life, time.Now()
			} else if o.Virtual && time.Since(since) > frozen {
				// In virtual time this is what a deadlock looks like: the runtime
				// finds one itself only among goroutines that wait for each other
				// by channels. The stacks show who waits.
				debug.SetTraceback("all")
				panic(fmt.Sprintf("load: %s: virtual time has stood still for %v: somebody waits for a mutex, or for something outside of the bubble", c.contender.Name, frozen))
			}
		}
	}()
	return func() { close(quit); <-gone }
}
