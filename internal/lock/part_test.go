package lock

import (
	"maps"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// What refused a transaction's write was not the lock only where the image shows it as
// its holder wrote it, with time left where the commit needs time.
func TestWhetherALockStands(t *testing.T) {
	p := open(t, Config{})
	h := p.take(t)
	_, image := p.record(t)
	changed := func(changes ddb.Item) ddb.Item {
		is := maps.Clone(image)
		maps.Copy(is, changes)
		return is
	}
	free := maps.Clone(image)
	for _, name := range []string{"lockedBy", "lockTime", "lockLease", "lockHeld"} {
		delete(free, name)
	}
	past := ddb.Integer(time.Now().Add(-time.Minute).Unix())
	for name, c := range map[string]struct {
		image ddb.Item
		late  bool // the commit needs no time
		want  bool
	}{
		"as it was taken":         {image, false, true},
		"another's id":            {changed(ddb.Item{"lockedBy": ddb.Text("other#1")}), false, false},
		"another token":           {changed(ddb.Item{"lockHeld": ddb.Integer(h.Token() + 1)}), false, false},
		"its time is over":        {changed(ddb.Item{"lockTime": past}), false, false},
		"its time may be over":    {changed(ddb.Item{"lockTime": past}), true, true},
		"nobody holds it":         {free, false, false},
		"the item is gone":        {nil, true, false},
		"a lock of another shape": {changed(ddb.Item{"lockHeld": ddb.Text("x")}), false, false},
	} {
		part := h.Part(false)
		if c.late {
			part.now = time.Time{}
		}
		if got := part.Stands(c.image); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
