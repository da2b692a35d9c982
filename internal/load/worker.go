package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// worker makes one change after the other. Its fields are its goroutine's
// until it has ended.
type worker struct {
	*crew
	change Change
	number int
	next   func() int // an item of the next change
	sharer int        // of those that share the changes, see crew.sharers
	calls  int

	acked    []int           // by item, over the whole run
	unknown  []int           // calls by item of which nobody knows whether they are in it
	made     map[string]bool // items that it was to make; false: nobody knows
	measured int             // acknowledged in the measured time
	turns    int             // of them: after one of another sharer
	failed   int             // in the measured time
	err      error           // the first failure
	took     []time.Duration
}

func newWorker(c *crew, number int, rng *rand.Rand, change Change) *worker {
	n := c.workload.Items
	_, each := c.sharers()
	w := &worker{crew: c, change: change, number: number, sharer: number / each, acked: make([]int, n), unknown: make([]int, n), made: map[string]bool{}}
	if c.workload.Zipf > 0 && n > 1 {
		zipf := rand.NewZipf(rng, c.workload.Zipf, 1, uint64(n-1))
		w.next = func() int { return int(zipf.Uint64()) } // below n
	} else {
		w.next = func() int { return rng.IntN(n) }
	}
	return w
}

func (w *worker) work(ctx context.Context) {
	for w.comes() && ctx.Err() == nil && w.window.late() < 0 {
		touched, items := w.choose()
		began, counts := w.window.now()
		var c call
		err := w.change(context.WithValue(ctx, callKey{}, &c), touched, w.inside(items))
		ended, in := w.window.now()
		if err == nil {
			w.note(items, w.acked, true)
			if w.window.ack() {
				w.measured++
				if me := int64(w.sharer + 1); w.turn.Swap(me) != me {
					w.turns++
					w.window.turned()
				}
			}
			if counts {
				w.took = append(w.took, ended-began)
			}
		} else {
			w.fail(items, in, err, &c)
		}
		if w.workload.Pause > 0 {
			sleep(ctx, w.workload.Pause)
		}
	}
}

// comes waits for the next change to come; false: no more do.
func (w *worker) comes() bool {
	if w.arrivals == nil {
		return true
	}
	_, more := <-w.arrivals
	return more
}

// inside is what a change of the items does while it has them: it takes time. Where
// nothing is stored, it notes whether somebody else has them too.
func (w *worker) inside(items []int) func(context.Context) {
	return func(ctx context.Context) {
		if w.workload.Held {
			within := &w.within[items[0]]
			if within.Add(1) > 1 {
				w.overlaps.Add(1)
			}
			defer within.Add(-1)
		}
		sleep(ctx, w.workload.Work)
	}
}

// choose says what the next change does: it moves one from every item to the last,
// or to the item that it makes. items are the numbers of those that are there.
func (w *worker) choose() (touched []Touched, items []int) {
	for len(items) < w.workload.Touches {
		if item := w.next(); !slices.Contains(items, item) {
			items = append(items, item)
			touched = append(touched, Touched{ID: itemID(item), Move: -1})
		}
	}
	w.calls++
	if w.workload.Makes {
		touched = append(touched, Touched{ID: w.madeID(), New: true})
	}
	touched[len(touched)-1].Move = len(touched) - 1
	return touched, items
}

// madeID is the item that the present call makes.
func (w *worker) madeID() string { return fmt.Sprintf("made-%d-%d", w.number, w.calls) }

// note counts a call's change in every item that it touched, in acked or unknown.
func (w *worker) note(items, in []int, acked bool) {
	for _, item := range items {
		in[item]++
	}
	if w.workload.Makes {
		w.made[w.madeID()] = acked
	}
}

func (w *worker) fail(items []int, measured bool, err error, c *call) {
	if w.leavesOpen(err, c) {
		w.note(items, w.unknown, false)
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
