package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// worker makes one change after the other. Its fields are its goroutine's
// until it has ended.
type worker struct {
	*crew
	change Change
	next   func() int // the item of the next change
	sharer int        // of those that share the changes, see crew.sharers

	acked    []int // by item, over the whole run
	unknown  []int // calls by item of which nobody knows whether they are in it
	measured int   // acknowledged in the measured time
	turns    int   // of them: after one of another sharer
	failed   int   // in the measured time
	err      error // the first failure
	took     []time.Duration
}

func newWorker(c *crew, number int, rng *rand.Rand, change Change) *worker {
	n := c.workload.Items
	_, each := c.sharers()
	w := &worker{crew: c, change: change, sharer: number / each, acked: make([]int, n), unknown: make([]int, n)}
	if c.workload.Zipf > 0 && n > 1 {
		zipf := rand.NewZipf(rng, c.workload.Zipf, 1, uint64(n-1))
		w.next = func() int { return int(zipf.Uint64()) } // below n
	} else {
		w.next = func() int { return rng.IntN(n) }
	}
	return w
}

func (w *worker) work(ctx context.Context) {
	inside := func(ctx context.Context) { sleep(ctx, w.workload.Work) }
	for ctx.Err() == nil && w.window.late() < 0 {
		item := w.next()
		began, counts := w.window.now()
		var c call
		err := w.change(context.WithValue(ctx, callKey{}, &c), itemID(item), inside)
		ended, in := w.window.now()
		if err == nil {
			w.acked[item]++
			if w.window.ack() {
				w.measured++
				if me := int64(w.sharer + 1); w.turn.Swap(me) != me {
					w.turns++
				}
			}
			if counts {
				w.took = append(w.took, ended-began)
			}
		} else {
			w.fail(item, in, err, &c)
		}
		if w.workload.Pause > 0 {
			sleep(ctx, w.workload.Pause)
		}
	}
}

func (w *worker) fail(item int, measured bool, err error, c *call) {
	if w.leavesOpen(err, c) {
		w.unknown[item]++
	}
	if measured {
		w.failed++
	}
	if w.err == nil {
		w.err = err
	}
}

// leavesOpen tells whether nobody knows if a failed call's change is in the
// item.
func (w *worker) leavesOpen(err error, c *call) bool {
	if w.contender.Unknown != nil {
		return w.contender.Unknown(err)
	}
	return c.unclear.Load()
}
