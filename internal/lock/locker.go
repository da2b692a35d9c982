package lock

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Locker takes the locks of a table's items. It is safe for concurrent use.
type Locker struct {
	Core *protocol.Core
	Config
	Contention *Contention // nil: nothing is remembered
	HoldTimes  *HoldTimes  // nil: nothing is remembered
}

// releaseID releases the hold of an id, if it is there, whatever its token; else it
// returns whose hold it found. If there is no answer, the lock ends with its
// lease.
func (t *Locker) releaseID(ctx context.Context, raw ddb.Item, id string) (holder string) {
	w := t.Core.NewWrite()
	w.Unlock()
	w.IfEqual(t.Core.Attr.LockedBy, ddb.Text(id))
	in, err := w.Update(raw)
	if err != nil {
		return ""
	}
	l, _ := t.Core.ParseRecord(t.Core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true}).Image)
	return l.By
}
