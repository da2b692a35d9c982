package lock

import (
	"time"

	"github.com/dynahold/dynahold/internal/recent"
)

// Bounds of what is remembered: so many items, for so long.
const (
	contentionKept = 1024
	contentionFor  = 2 * time.Second
)

// Contention remembers for which items callers had to wait lately, because of
// other processes. A nil value remembers nothing.
type Contention recent.Memory[time.Time]

// NewContention makes a memory.
func NewContention() *Contention { return (*Contention)(recent.New[time.Time](contentionKept)) }

func (r *Contention) memory() *recent.Memory[time.Time] { return (*recent.Memory[time.Time])(r) }

// Note remembers that others wanted an item.
func (r *Contention) Note(key string) {
	r.memory().Change(key, func(time.Time) (time.Time, bool) { return time.Now(), true })
}

// Forget says that nobody wanted it any more.
func (r *Contention) Forget(key string) {
	r.memory().Change(key, func(time.Time) (time.Time, bool) { return time.Time{}, false })
}

// Recent reports whether others wanted an item within the last moments.
func (r *Contention) Recent(key string) bool {
	seen := r.memory().Get(key)
	return !seen.IsZero() && time.Since(seen) < contentionFor
}
