package ticket

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// A late copy of a request for a ticket has the id and the end of the entry that it was
// first, and another number: what was watched of that one says nothing of it.
func TestAnEntryOfACopyIsWatchedAnew(t *testing.T) {
	t.Parallel()
	entryOf := func(number int64) entry {
		return entry{id: "a", number: number, lease: time.Minute, beat: ddb.Integer(100)}
	}
	j, begun := judge{clockless: true}, time.Now()
	j.see(line{entries: []entry{entryOf(1)}}, begun)
	later := begun.Add(2 * time.Minute)
	if left := j.left(entryOf(1), later, later); left >= 0 {
		t.Errorf("what stood for two leases has %v left", left)
	}
	if left := j.left(entryOf(2), later, later); left != time.Minute {
		t.Errorf("a copy that was never seen has %v left, want a lease", left)
	}
	j.see(line{entries: []entry{entryOf(2)}}, later)
	if left := j.left(entryOf(2), later, later); left != time.Minute {
		t.Errorf("a copy that was just seen has %v left, want a lease", left)
	}
}
