package delegate

import (
	"context"
	"sync/atomic"
	"time"
)

// Bounds of what one process sends as one: so many commands, of so many bytes.
const (
	mostOrders = 64
	mostBatch  = 64 << 10
)

// settle is how long a caller whose context ended waits for the verdict on what it sent.
const settle = 4 * time.Second

// caller is one call under way.
type caller struct {
	order
	ctx   context.Context
	end   chan verdict // has room: nobody waits for a caller that left
	alone bool         // together with others it failed
}

type verdict struct {
	answer string
	err    error
}

// batch are the callers whose commands travel as one. Its fields belong to the goroutine of
// its line.
type batch struct {
	callers []*caller
	answers []string // of the last time that the commands ran here
	changed []bool   // which of them have changed the item then
	ctx     context.Context
	cancel  context.CancelCauseFunc
	began   time.Time
	live    atomic.Int64 // callers that have not left

	seq    int64  // 0: it has no number yet
	life   string // of the item, when it got that
	posted bool   // its mail may lie in its row
	inRow  bool   // it has been there
	forced bool   // this process is to lead, whoever leads now
	passed bool   // for who led has passed its mail over
	told   func() // tells operators that its mail waits no more; nil: it has none
}

// yields notes that others lead. A new leader gets the time that every leader has: where all
// who wait went on to lead, each of their claims would undo what the others have seen, and
// nobody would serve anything.
func (b *batch) yields(toAnother bool) *batch {
	if b != nil && (toAnother || !b.passed) {
		b.forced = false
	}
	return b
}

func newBatch(callers []*caller) *batch {
	b := &batch{callers: callers, began: time.Now()}
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(callers[0].ctx))
	b.live.Store(int64(len(callers)))
	return b
}

// aged reports whether TTL may have removed the row of a batch, and what it said. If the post
// is sent again then, it puts commands back that may have been served. A machine that was
// suspended knows it by the wall clock alone.
func (b *batch) aged() bool {
	return max(time.Since(b.began), time.Now().Round(0).Sub(b.began.Round(0))) > kept/2
}

// leave counts one caller less; the last one ends the batch.
func (b *batch) leave(cause error) {
	if b.live.Add(-1) == 0 {
		b.cancel(cause)
	}
}

func (b *batch) orders() (all []order) {
	for _, c := range b.callers {
		all = append(all, c.order)
	}
	return all
}

// over ends what belongs to a batch that has its verdicts.
func (b *batch) over() {
	if b.told != nil {
		b.told()
	}
	b.cancel(nil)
}

// answer gives every caller what came of its command.
func (b *batch) answer(answers []string) {
	b.over()
	for i, c := range b.callers {
		c.end <- verdict{answer: answers[i]}
	}
}

// fail gives all the same error.
func (b *batch) fail(err error) {
	b.over()
	for _, c := range b.callers {
		c.end <- verdict{err: err}
	}
}

// isTaken reports whether answers say that a mail was taken back.
func isTaken(answers []string) bool { return len(answers) == 1 && answers[0] == taken }
