package unlocked

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// copyLives is for how long a copy of a request can come late: the service refuses a
// signature that is older.
const copyLives = 15 * time.Minute

// Exclusive says that the writes of the call are bound to nothing that a lock moves. If
// one is refused by a lock alone, and the call ends with "not written", a copy of it that
// comes late would be applied when the lock is gone: so the call leaves id, which its
// writes demand not to be there, on the item.
func (t *Call) Exclusive(id protocol.OnceID) { t.exclusive = &id }

// excluded reports whether no copy of a refused write can be applied any more, once the
// call has ended with err. It costs a request where a lock has refused one, and nothing else.
func (t *Call) excluded(ctx context.Context, err error) bool {
	if err == nil || t.behind == nil || t.Doubt.Open() || errors.Is(err, repo.ErrOutcomeUnknown) {
		return true
	}
	for _, moved := range []error{repo.ErrStale, repo.ErrConflict, repo.ErrNotFound} {
		if errors.Is(err, moved) {
			return true // what the writes demand does not come again
		}
	}
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for image := t.behind; t.Core.Retention >= copyLives; {
		in, err := lockless.Exclude(t.Core, t.Raw, image, *t.exclusive)
		if err != nil {
			return false
		}
		switch res := t.Core.Update(ctx, in, ddb.Options{}); {
		case res.Outcome == ddb.Applied:
			return true
		case res.Outcome != ddb.Condition, t.Core.Absent(res.Image), t.CheckShape(res.Image) != nil:
			return false
		case lockless.Remembers(t.Core, res.Image, *t.exclusive):
			return true
		default: // others' ids came meanwhile
			image = res.Image
		}
	}
	return false
}
