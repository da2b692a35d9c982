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
	span     time.Duration // how long it lasts, if there are turns enough
	changes  quota         // acknowledged in it
	requests quota         // sent in it
	turns    quota         // taken in it
}

// quota counts up to a limit; 0 is none.
type quota struct {
	n     atomic.Int64
	limit int64
}

func (q *quota) full() bool { return q.limit > 0 && q.n.Load() >= q.limit }
func (q *quota) share() (share float64) {
	if q.limit > 0 {
		share = float64(q.n.Load()) / float64(q.limit)
	}
	return share
}

// step is what an early end is rounded up to. An end right at a change would
// be one right after a write, and flatter those who make many changes at once.
const step = 100 * time.Millisecond

// longest is for how many spans the measured time waits for turns.
const longest = 8

// newWindow makes the window of a workload whose changes so many share. Who shares
// with nobody has a turn with every change.
func newWindow(w Workload, sharers int) *window {
	t := &window{base: time.Now(), span: w.Span}
	t.changes.limit, t.requests.limit = int64(w.Enough), int64(w.Budget)
	if sharers > 1 {
		t.turns.limit = int64(w.Turns) * int64(sharers)
	}
	t.from.Store(math.MaxInt64)
	return t
}

// begin starts the warm-up; opening the contenders may have taken some time.
func (t *window) begin(w Workload) {
	t.began = time.Since(t.base)
	span := w.Span
	if t.turns.limit > 0 {
		span *= longest
	}
	t.until.Store(int64(t.began + w.Warmup + span))
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

// turned notes that somebody else has the turn.
func (t *window) turned() { t.note(&t.turns) }

func (t *window) note(q *quota) bool {
	now, in := t.now()
	if in {
		q.n.Add(1)
	}
	if in && t.ripe(now) {
		steps := (int64(now)-t.from.Load())/int64(step) + 1
		early := t.from.Load() + steps*int64(step)
		for late := t.until.Load(); early < late && !t.until.CompareAndSwap(late, early); late = t.until.Load() {
		}
	}
	return in
}

func (t *window) measured() time.Duration { return time.Duration(t.until.Load() - t.from.Load()) }

// ripe reports whether the measured time may end.
func (t *window) ripe(now time.Duration) bool {
	long := int64(now)-t.from.Load() >= int64(t.span)
	return (long || t.changes.full() || t.requests.full()) && (t.turns.limit == 0 || t.turns.full())
}

// done is the share of the run that is over.
func (t *window) done() float64 {
	passed := float64(time.Since(t.base) - t.began)
	share := passed / float64(time.Duration(t.until.Load())-t.began)
	early := max(t.changes.share(), t.requests.share())
	if t.turns.limit > 0 {
		early = min(max(early, passed/float64(time.Duration(t.from.Load())-t.began+t.span)), t.turns.share())
	}
	return min(max(share, early), 1)
}
