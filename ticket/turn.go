package ticket

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Turn is the lock: its holder is the first in line. It is renewed in the
// background until Done. It is safe for concurrent use.
type Turn struct{ t *Ticket }

func turnOf(t *Ticket, err error) (*Turn, error) {
	if err != nil {
		return nil, err
	}
	return &Turn{t}, nil
}

// Number is the ticket, and the fencing token: it is greater than that of every
// earlier turn. Outside resources that refuse smaller ones are safe even from
// holders who do not notice the end of their turn.
func (t *Turn) Number() int64 { return t.t.number }

// Entity is what the turn is about, without the namespace.
func (t *Turn) Entity() string { return t.t.entity }

// Format prints the entity and the number.
func (t *Turn) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "turn for %q, number %d", t.t.entity, t.t.number)
}

// Until is when the holder must stop if no renewal comes through, on its own
// clock.
func (t *Turn) Until() time.Time { return t.t.lease.Until() }

// Context ends with the turn, with the cause: repo.ErrReleased after Done,
// repo.ErrLockLost if it was passed over, repo.ErrLockExpired at the deadline,
// ErrClosed. With it a Lock of the same entity is ErrNested: it would wait for itself.
func (t *Turn) Context() context.Context { return t.inside(t.t.lease.Context()) }

// inside is a context that tells of the turn.
func (t *Turn) inside(ctx context.Context) context.Context {
	return nesting.Holding(ctx, nesting.ItemOf(t.t.q.core, t.t.raw), strconv.FormatInt(t.t.number, 10), t.t.lease.Cause)
}

// Extend moves the deadline to a full lease from now, for work that should not
// begin near it. One request. Without it the turn is renewed after a third of
// the lease. It gives way to a Done that comes meanwhile, with ErrReleased.
func (t *Turn) Extend(ctx context.Context) error {
	return t.t.lease.Extend(ctx)
}

// Done gives the turn to the next in line; it is harmless after Done. It works
// although ctx is done: it ends 3 s after ctx at the latest, whatever other
// calls for the turn are under way. One request. ErrLockLost says that others
// had passed the turn over before, with ErrOutcomeUnknown where that may have come behind
// this call; ErrClosed, that Close ended it.
func (t *Turn) Done(ctx context.Context) (err error) {
	ctx, told := t.t.q.core.Observe.Call(ctx, telemetry.Ticket, "Done", t.Entity)
	defer told.End(&err)
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	return t.t.end(ctx, repo.ErrReleased)
}
