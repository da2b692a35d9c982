package delegate

import (
	"context"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// What a process sees of an item while a write of its own is under way. A throttled write is
// sent again and again, meanwhile a leader writes a dozen times: the ids that the item
// remembers are then others', and the image that refuses the write at last proves nothing.
// One that was seen before them does: whatever the process reads is compared with its
// writes that have no verdict (internal/protocol).
const (
	// slow is how long a write takes at least that is looked after: a leader has written
	// some four times then, of the eight that an item remembers.
	slow = 20 * time.Millisecond
	// mostLooksAfter bounds the looks after one write.
	mostLooksAfter = 8
)

// witness looks at the item while the write of the round is slow, until others have moved
// it; stop ends it.
func (r *round) witness(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for range mostLooksAfter {
			ddb.Sleep(ctx, slow)
			if ctx.Err() != nil {
				return
			}
			from := r.from.Load()
			if from == nil {
				continue // nothing is under way yet
			}
			image, err := r.l.read(ctx)
			if err == nil && !sameWrite(r.l.e.core, image, *from) {
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}
