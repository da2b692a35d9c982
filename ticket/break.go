package ticket

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Break takes a ticket out of the queue of an entity by force, for operators, whether
// it is served or waits: number is that of [Queue.List]. ErrNotHeld if no entry has this
// number. Two requests, one more each time that its owner renews it between them.
//
// Its owner learns it from its next renewal, within a third of its lease, or when it
// is done: the context of the ticket ends with ErrLockLost, and so does Done. Until
// then the next in line may be served beside it, with a greater number: outside
// resources that refuse smaller ones are safe. Who waits in [Queue.Lock] draws a new
// ticket, at the end of the line.
//
// If an answer was lost, or others were quicker, the queue tells whether the ticket was taken away by force,
// by this call or another's; ErrOutcomeUnknown if the whole item is gone.
// With the context of the turn itself it is ErrNested.
func (q *Queue) Break(ctx context.Context, entity string, number int64) error {
	p, err := q.place(entity)
	if err != nil {
		return err
	}
	if err = nesting.Break(ctx, nesting.ItemOf(q.core, p.raw), repo.Key{Partition: p.label}, strconv.FormatInt(number, 10)); err != nil {
		return err
	}
	l, err := q.look(ctx, p)
	if err != nil {
		return err
	}
	clean, sent := true, false
	for {
		e, there := l.first(func(e entry) bool { return e.number == number })
		switch {
		case there:
		case sent && l.brokenTicket(number):
			return nil // also by a copy of the request that the network made
		case !clean && l.next == 0:
			return fmt.Errorf("%w: queue %q, ticket %d: an answer was lost, and the item is gone", repo.ErrOutcomeUnknown, p.label, number)
		default:
			return fmt.Errorf("%w: queue %q has no ticket %d", repo.ErrNotHeld, p.label, number)
		}
		res := q.core.Update(ctx, q.breaking(p, e, l), ddb.Options{Absence: true,
			Stands: func(image ddb.Item) bool { return ddb.Equal(image[attrTicket+e.id], e.ticket) }})
		clean, sent = clean && res.Clean, true
		switch res.Outcome {
		case ddb.Applied:
			q.core.Observe.Broken(ctx, telemetry.Ticket, telemetry.Operator, slog.String("queue", p.label), slog.Int64("lost", number))
			return nil
		case ddb.Unknown:
			return fmt.Errorf("queue %q, ticket %d: %w: %w", p.label, number, repo.ErrOutcomeUnknown, res.Err)
		case ddb.Refused:
			return res.Err
		}
		if l, err = q.refused(p, res.Image, clean); err != nil {
			return err
		}
	}
}

func brokenName(number int64) string { return attrBroken + strconv.FormatInt(number, 10) }

// noteBroken reads the evidence that a ticket was taken away by force. What is no such
// evidence is not this package's, and says nothing.
func (l *line) noteBroken(name string, v types.AttributeValue) {
	digits, ok := strings.CutPrefix(name, attrBroken)
	if !ok {
		return
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || name != brokenName(number) {
		return
	}
	end, err := ddb.Time(v)
	if err != nil {
		return
	}
	if l.broken == nil {
		l.broken = map[int64]time.Time{}
	}
	l.broken[number] = end
}

// brokenTicket reports whether a ticket was taken away by force.
func (l line) brokenTicket(number int64) bool {
	_, broken := l.broken[number]
	return broken
}

// settledBefore are the broken tickets whose ends lie before a time.
func (l line) settledBefore(at time.Time) (old []int64) {
	for number, end := range l.broken {
		if end.Before(at) {
			old = append(old, number)
		}
	}
	slices.Sort(old)
	return old
}
