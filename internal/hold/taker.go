package hold

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
)

// Taker takes the locks of a table's items. It is safe for concurrent use.
type Taker struct {
	Core *ddb.Core
	Config
	Rivals *guard.Rivals // nil: nothing is remembered
	Turns  *Turns        // nil: nothing is remembered
}

// free releases the hold of an id, if it is there, whatever its token. If it
// fails, the lock ends with its lease.
func (t *Taker) free(ctx context.Context, raw ddb.Item, id string) {
	w := t.Core.NewWrite()
	w.Unlock()
	w.IfEqual(t.Core.Attr.LockedBy, ddb.Text(id))
	if in, err := w.Update(raw); err == nil {
		t.Core.Update(ctx, in, ddb.Options{NoSettle: true})
	}
}
