package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/lease"
)

// group is many leases that are taken at one moment, and a service that goes
// away for a while.
type group struct {
	began    time.Time
	from, to time.Duration // when the service is away
	silent   bool          // it then answers nothing, rather than an error

	leases   []*lease.Lease
	starts   [800]atomic.Int64 // renewals, by tenth of a second
	underWay atomic.Int64
	most     atomic.Int64 // under way at a time
	latest   atomic.Int64 // the longest time from one success to the next
}

const groupSize = 5000

// latency is that of an answer.
const latency = 5 * time.Millisecond

func (c *group) gather() {
	c.began = time.Now()
	for range groupSize {
		last := c.began
		l := begin(lease.Config{Length: length, Every: every}, c.began.Add(length), func(ctx context.Context) error {
			if err := c.ask(ctx); err != nil {
				return err
			}
			grow(&c.latest, int64(time.Since(last)))
			last = time.Now()
			return nil
		})
		c.leases = append(c.leases, l)
		l.Start(context.Background())
	}
}

func (c *group) ask(ctx context.Context) error {
	at := time.Since(c.began)
	c.starts[at/(time.Second/10)].Add(1)
	grow(&c.most, c.underWay.Add(1))
	defer c.underWay.Add(-1)
	switch away := at >= c.from && at < c.to; {
	case away && c.silent:
		ctx, cancel := context.WithTimeout(ctx, length/3) // of one attempt
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	case away:
		return errors.New("away")
	}
	time.Sleep(latency)
	return nil
}

func grow(most *atomic.Int64, n int64) {
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
}

// leave ends all leases once no renewal is under way, which Take would wait for
// in a way that a bubble takes for running.
func (c *group) leave() {
	for _, l := range c.leases {
		l.Halt()
	}
	time.Sleep(length)
	for _, l := range c.leases {
		finish(l)
	}
}

func TestRenewalsOfManyKeepAnEvenPace(t *testing.T) {
	for name, c := range map[string]*group{
		"taken at one moment":           {},
		"after an outage with errors":   {from: 2*length/3 + every/2, to: 2*length/3 + every/2 + length/3},
		"after an outage in silence":    {from: 2*length/3 + every/2, to: 2*length/3 + every/2 + length/3, silent: true},
		"in an outage from the outset":  {from: 0, to: length / 2},
		"in silence from the outset on": {from: 0, to: length / 2, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.gather()
				time.Sleep(2 * length)
				synctest.Wait()
				for i, l := range c.leases {
					if cause := l.Cause(); cause != nil {
						t.Errorf("lease %d is over: %v", i, cause)
						break
					}
				}
				c.leave()
				// Twice as fast as in the long run, of which the tenths of a
				// second give no more than the next whole number.
				const most = 2*groupSize/int(every/time.Second)/10 + 1
				for i := range c.starts {
					if n := c.starts[i].Load(); n > int64(most) {
						t.Errorf("%d renewals in a tenth of a second after %v, %d would be even", n, time.Duration(i)*time.Second/10, most/2)
						break
					}
				}
				if n := c.most.Load(); n > 1000 {
					t.Errorf("%d renewals under way", n)
				}
				if after := time.Duration(c.latest.Load()); c.to == 0 && after > length*11/20 {
					t.Errorf("a renewal came %v after the one before it", after)
				}
			})
		})
	}
}

func TestFewLeasesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := lease.Config{Length: length, Every: every}
		for range 50 {
			began := time.Now()
			l, renewals := keep(cfg, func() error { return nil })
			defer finish(l)
			time.Sleep(every + every/10 + 50*time.Millisecond)
			synctest.Wait()
			if len(*renewals) == 0 {
				t.Fatalf("no renewal %v after the lease was taken", time.Since(began))
			}
		}
	})
}
