package load

import (
	"math"
	"sync/atomic"
	"time"
)

// window is the measured time of a run. Its times count from base, since
// wall clocks may jump.
type window struct {
	base     time.Time
	began    time.Duration // when the work began; set by begin, before there are workers
	from     atomic.Int64  // nothing is measured before begin
	until    atomic.Int64  // moves to an earlier moment when enough was measured
	changes  quota         // acknowledged in it
	requests quota         // sent in it
}

// quota counts up to a limit; 0 is none.
type quota struct {
	n     atomic.Int64
	limit int64
}

func (q *quota) add() (full bool) { return q.n.Add(1) == q.limit }
func (q *quota) share() (share float64) {
	if q.limit > 0 {
		share = float64(q.n.Load()) / float64(q.limit)
	}
	return share
}

// step is what an early end is rounded up to. An end right at a change would
// be one right after a write, and flatter those who make many changes at once.
const step = 100 * time.Millisecond

func newWindow(w Workload) *window {
	t := &window{base: time.Now()}
	t.changes.limit, t.requests.limit = int64(w.Enough), int64(w.Budget)
	t.from.Store(math.MaxInt64)
	return t
}

// begin starts the warm-up; opening the contenders may have taken some time.
func (t *window) begin(w Workload) {
	t.began = time.Since(t.base)
	t.until.Store(int64(t.began + w.Warmup + w.Span))
	t.from.Store(int64(t.began + w.Warmup))
}

// now tells the time, and whether it is measured.
func (t *window) now() (d time.Duration, in bool) {
	d = time.Since(t.base)
	return d, int64(d) >= t.from.Load() && int64(d) < t.until.Load()
}

// late is how long the measured time has been over; negative before.
func (t *window) late() time.Duration {
	return time.Since(t.base) - time.Duration(t.until.Load())
}

// ack notes an acknowledged change and tells whether it counts.
func (t *window) ack() bool { return t.note(&t.changes) }

// sent notes a request and tells whether it counts.
func (t *window) sent() bool { return t.note(&t.requests) }

func (t *window) note(q *quota) bool {
	now, in := t.now()
	if in && q.add() {
		steps := (int64(now)-t.from.Load())/int64(step) + 1
		early := t.from.Load() + steps*int64(step)
		for late := t.until.Load(); early < late && !t.until.CompareAndSwap(late, early); late = t.until.Load() {
		}
	}
	return in
}

func (t *window) measured() time.Duration { return time.Duration(t.until.Load() - t.from.Load()) }

// done is the share of the run that is over.
func (t *window) done() float64 {
	share := float64(time.Since(t.base)-t.began) / float64(time.Duration(t.until.Load())-t.began)
	return min(max(share, t.changes.share(), t.requests.share()), 1)
}
