package lock

import (
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/recent"
)

// HoldTimes remembers how long a turn, and a look, took lately on items that many
// wanted.
type HoldTimes = recent.Memory[pace.Learned]

// holdTimesKept bounds how many items are remembered.
const holdTimesKept = 1024

// NewHoldTimes makes a memory of turns.
func NewHoldTimes() *HoldTimes { return recent.New[pace.Learned](holdTimesKept) }

// learn keeps what the line has taught, for those who will wait there later.
func (q *queued) learn() {
	q.locker.HoldTimes.Change(q.Core.KeyText(q.Raw), func(pace.Learned) (pace.Learned, bool) { return q.forecast.Learned, true })
}
