package ticket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// maxTries bounds tries that end in somebody else's favour just when they
// begin.
const maxTries = 8

// join draws a ticket; alone does so only if nobody live is there.
func (q *Queue) join(ctx, grace context.Context, p place, alone bool) (*Ticket, error) {
	ctx, over, err := q.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	var seen line
	for range maxTries {
		t, l, err := q.try(ctx, grace, p, alone)
		if t != nil && q.open.Context().Err() != nil {
			// Closed in this moment: Close may have gone on without it.
			return nil, errors.Join(ErrClosed, t.leave(grace))
		}
		if t != nil && alone {
			if again, err := t.alone(ctx, grace, l); again {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		if t != nil || err != nil {
			return t, err
		}
		seen = l
		if alone {
			if seen, err = q.clear(ctx, p, seen); err != nil {
				return nil, err
			}
			if len(seen.entries) > 0 {
				break
			}
		}
	}
	return nil, q.locked(p, seen)
}

// alone judges a ticket that was drawn on the condition that nobody is there.
// The condition is about the count of the entries; whose turn it is the entries
// decide. Where it is not this ticket's, it is given back.
func (t *Ticket) alone(ctx, grace context.Context, l line) (again bool, err error) {
	ahead, present := l.before(t.id, t.number)
	first := present && len(ahead) == 0
	if first && t.usable() == nil {
		return false, nil
	}
	if err := t.leave(grace); err != nil {
		return false, err
	}
	if first { // the answer came after the end of its lease
		return ctx.Err() == nil, ddb.CtxError(ctx)
	}
	err = fmt.Errorf("%w: queue %q in table %q counted nobody, but has %d entries: delete the item when nobody uses it", repo.ErrSchema, t.label, t.q.core.Name, len(ahead))
	j := judge{skew: t.q.cfg.ClockSkew, clockless: t.q.cfg.Clockless}
	if live, _ := j.sort(ahead, t.q.clock(), time.Now()); live > 0 {
		l.entries = ahead
		err = ddb.Join(t.q.locked(t.place, l), err)
	}
	return false, err
}

// try sends one request; without ticket and error, it was refused and line is
// what was seen. grace is how long what it took may be taken back.
func (q *Queue) try(ctx, grace context.Context, p place, alone bool) (*Ticket, line, error) {
	asked := time.Now() // before the end is reckoned: the deadline counts from here
	id, now := newID(), q.clock()
	until := now.Add(q.cfg.Lease)
	q.draws(p, id)
	defer q.drew(p, id)
	res := q.core.Update(ctx, q.enter(p, id, now, until, alone), ddb.Options{
		AwaitAnswer: true, OnItem: true, Holding: true, Stands: func(row ddb.Item) bool { return row[attrTicket+id] == nil },
	})
	switch res.Outcome {
	case ddb.Refused:
		return nil, line{}, res.Err
	case ddb.Unknown:
		// Nothing of the caller's is in doubt but its place, and that is freed.
		ahead := q.abandon(grace, p, id)
		err := fmt.Errorf("queue %q: no answer to the request for a ticket: %w", p.label, res.Err)
		if ctx.Err() != nil && len(ahead.entries) > 0 {
			err = ddb.Join(q.locked(p, ahead), err) // for whom it would have waited
		}
		return nil, line{}, err
	}
	l, err := q.parse(p, res.Shown())
	if err != nil {
		if res.Outcome == ddb.Applied || !res.Clean {
			q.abandon(grace, p, id)
		}
		return nil, l, err
	}
	// The end tells an own entry, of an earlier attempt or a copy that the
	// network made, from somebody else's with the same id: only its owner ever
	// writes it, and we wrote no other yet.
	mine, there := l.find(id)
	if there && ddb.Equal(mine.beat, ddb.Number(ddb.Seconds(until))) {
		t := q.newTicket(ctx, p, mine, l, asked)
		q.tell(p, l, asked)
		return t, l, nil
	}
	switch {
	case res.Outcome == ddb.Applied:
		q.abandon(grace, p, id)
		return nil, l, fmt.Errorf("%w: queue %q: the answer lacks the entry that was written", repo.ErrSchema, p.label)
	case !there && len(l.entries) == 0:
		return nil, l, fmt.Errorf("%w: queue %q in table %q counts entries, but has none: delete the item", repo.ErrSchema, p.label, q.core.Name)
	}
	return nil, l, nil // others are there, or the id is taken
}

// clear removes entries that are all stale; what remains after that is
// returned.
func (q *Queue) clear(ctx context.Context, p place, seen line) (line, error) {
	j := judge{skew: q.cfg.ClockSkew, clockless: q.cfg.Clockless}
	for range maxTries {
		now := q.clock()
		if live, _ := j.sort(seen.entries, now, now); live > 0 || len(seen.entries) == 0 {
			break
		}
		var err error
		if seen, err = q.pass(ctx, p, nil, seen.entries); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// pass passes over stale entries, the first of them if they are many. The
// answer is a fresh look, whether or not it was done.
func (q *Queue) pass(ctx context.Context, p place, own *Ticket, stale []entry) (line, error) {
	stale = stale[:min(len(stale), maxPass)]
	res := q.core.Update(ctx, q.passing(p, own, stale), ddb.Options{Timeout: lookTimeout, NoGrace: true, Absence: true, Holding: true})
	if res.Err != nil {
		return line{}, res.Err
	}
	if res.Outcome == ddb.Applied {
		q.core.Observe.TakenOver(context.Background(), telemetry.Ticket, len(stale),
			slog.String("queue", p.label), slog.Int("tickets", len(stale)), slog.Int64("lost", stale[len(stale)-1].number))
	}
	return q.parse(p, res.Shown())
}

// abandon frees a place that may have been taken by a request without an
// answer: whoever asked for it is told that it was not. It returns those who
// were ahead, as far as it could see them. ctx is one that lingers.
func (q *Queue) abandon(ctx context.Context, p place, id string) line {
	ctx, cancel := context.WithTimeout(ctx, ddb.Cleanup)
	defer cancel()
	res := q.core.Update(ctx, q.removalByID(p, id), ddb.Options{Timeout: lookTimeout, NoGrace: true, Holding: true})
	l, err := parse(res.Shown())
	if err != nil {
		return line{}
	}
	if mine, there := l.find(id); there {
		l.entries, _ = l.before(id, mine.number)
	}
	return l
}

// lasting reports whether an error will not go away by itself.
func lasting(err error) bool {
	for _, target := range []error{repo.ErrNoTable, repo.ErrDenied, repo.ErrConfig, repo.ErrSchema, repo.ErrTooLarge} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
