package guard

import (
	"time"

	"github.com/dynahold/dynahold/internal/recent"
)

// Bounds of what is remembered: so many items, for so long.
const (
	rivalsKept = 1024
	rivalsFor  = 2 * time.Second
)

// Rivals remembers for which items callers had to wait lately, because of
// other processes. A nil value remembers nothing.
type Rivals recent.Memory[time.Time]

// NewRivals makes a memory.
func NewRivals() *Rivals { return (*Rivals)(recent.New[time.Time](rivalsKept)) }

func (r *Rivals) memory() *recent.Memory[time.Time] { return (*recent.Memory[time.Time])(r) }

// Note remembers that others wanted an item.
func (r *Rivals) Note(key string) {
	r.memory().Change(key, func(time.Time) (time.Time, bool) { return time.Now(), true })
}

// Forget says that nobody wanted it any more.
func (r *Rivals) Forget(key string) {
	r.memory().Change(key, func(time.Time) (time.Time, bool) { return time.Time{}, false })
}

// Lately reports whether others wanted an item within the last moments.
func (r *Rivals) Lately(key string) bool {
	seen := r.memory().Get(key)
	return !seen.IsZero() && time.Since(seen) < rivalsFor
}
