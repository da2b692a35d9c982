package ticket

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// end takes the entry away, and repeats that until there is a verdict, as long as
// ctx allows, which is one that lingers, or that of Close. The same request draws the
// tickets of those of this process who wait for one.
func (t *Ticket) end(ctx context.Context, why error) error {
	e := t.q.ending(t)
	in := t.q.removal(t, e)
	last := ddb.Result{Clean: true}
	defer func() { t.q.ended(ctx, t, e, last) }() // also if the client panics
	send := func() {
		clean := last.Clean
		last = ddb.Result{} // nobody knows yet
		last = t.q.core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true, Absence: true, Stands: t.standsIn})
		last.Clean = last.Clean && clean
	}
	err := t.lease.End(ctx, why, func() (ddb.Result, bool) {
		// Where the entry is as it was, or the item has no room, the others' entering is refused.
		if send(); len(e.newcomers) > 0 && (t.standsIn(last.Image) || errors.Is(last.Err, repo.ErrTooLarge)) {
			in = t.q.removal(t, ending{})
			send()
		}
		return last, false
	}, func(res ddb.Result) error { return t.verdict(ctx, res) })
	if errors.Is(t.lease.Ended(), repo.ErrReleased) {
		return nil
	}
	return err
}

// standsIn reports whether an item shows the entry in place.
func (t *Ticket) standsIn(image ddb.Item) bool {
	return ddb.Equal(image[attrTicket+t.id], ddb.Integer(t.number))
}

// leave is Leave on a context that lingers. Whatever has become of the place: without an
// error nothing of it stays.
func (t *Ticket) leave(ctx context.Context) error {
	if err := t.end(ctx, repo.ErrReleased); t.lease.Ended() == nil {
		return err
	}
	return nil
}

// verdict judges a removal; nil means that the entry is gone by it. The caller
// holds op.
func (t *Ticket) verdict(ctx context.Context, res ddb.Result) error {
	switch {
	case res.Outcome == ddb.Applied:
		return nil
	case res.Outcome == ddb.Refused:
		return t.lease.Describe(res.Err)
	case res.Outcome != ddb.Condition:
		return t.lease.Describe(fmt.Errorf("%w: the place may be taken until its lease ends: %w", repo.ErrOutcomeUnknown, res.Err))
	}
	l, err := t.q.refused(t.place, res.Image, res.Clean)
	if err != nil {
		return err
	}
	if _, there := l.find(t.id); there {
		// A late copy of the request that drew the ticket stands there, with
		// another number: it is nobody's, but only we can know.
		t.q.abandon(ctx, t.place, t.id)
	}
	if l.leftBy(t.number, !res.Clean, t.lease.Expired()) {
		return nil
	}
	if err = t.lease.Lose(); l.tells(t.number) {
		return err
	}
	return fmt.Errorf("%w, %w: nothing tells whether that came before this request", err, repo.ErrOutcomeUnknown)
}
