package ticket

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// leasedTicket is a ticket as its lease knows it.
type leasedTicket Ticket

// Renew moves the end of the entry. Its answer is also a look at the queue.
func (l *leasedTicket) Renew(ctx context.Context, until time.Time) error {
	t := (*Ticket)(l)
	asked := time.Now()
	image, err := t.move(ctx, until)
	if err != nil {
		return err
	}
	// The own entry is in place, whatever else there is on the item. Those who
	// wait for their turn read it for themselves.
	if l, err := t.q.parse(t.place, image); err == nil {
		t.q.tell(t.place, l, asked)
	}
	return nil
}

// Describe says of an error which ticket it is about.
func (l *leasedTicket) Describe(err error) error {
	return fmt.Errorf("queue %q, ticket %d: %w", l.label, l.number, err)
}

// Name is what the log says of the ticket.
func (l *leasedTicket) Name() (kind string, which []slog.Attr) {
	return "ticket", []slog.Attr{slog.String("queue", l.label), slog.Int64("ticket", l.number)}
}

// move sends one renewal: it moves the end of the entry to until, and returns the item
// that shows it. A ticket whose entry is gone is lost. The caller holds op.
func (t *Ticket) move(ctx context.Context, until time.Time) (ddb.Item, error) {
	// No greater end was ever sent: if it is in place, this renewal landed.
	landed := func(image ddb.Item) bool { return ddb.Equal(image[attrBeat+t.id], ddb.Number(ddb.Seconds(until))) }
	res := t.q.core.Update(ctx, t.q.renewal(t, until), ddb.Options{NoGrace: true, Holding: true, Absence: true,
		Stands: func(image ddb.Item) bool { return t.standsIn(image) && !landed(image) }})
	image := res.Shown()
	switch {
	case res.Outcome == ddb.Refused:
		return nil, res.Err
	case res.Outcome == ddb.Unknown:
		return nil, fmt.Errorf("%w: %w", repo.ErrOutcomeUnknown, res.Err)
	case !t.standsIn(image):
		return nil, t.lease.Lose()
	case !landed(image):
		return nil, fmt.Errorf("%w: queue %q, ticket %d: somebody else changed the entry", repo.ErrSchema, t.label, t.number)
	}
	return image, nil
}
