package ticket

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// Wait waits for the ticket's turn, as long as ctx allows. The place is kept
// when it fails: Wait may be called again, or Leave. When ctx or Config.Wait
// ends it, the error is ErrLocked, with *repo.LockedError, joined with the
// context's. Of two calls at the same time one waits for the other.
//
// Requests: one read per look. The next in line looks after an eighth of the
// time for which it has been next, within Config.Wait; those behind it after
// half of the time that the line will need by its pace, at most a third of
// the lease. Of several callers of this process the first looks for all; behind a turn of
// their own process they look once a second.
func (t *Ticket) Wait(ctx context.Context) (_ *Turn, err error) {
	w := waiter{Ticket: t, patience: lookTimeout, begun: time.Now()}
	ctx, told := t.q.core.Observe.Call(ctx, telemetry.Ticket, "Wait", func() string { return t.entity })
	defer told.End(&err)
	select {
	case t.waiting <- struct{}{}:
	default:
		select {
		case t.waiting <- struct{}{}:
		case <-ctx.Done():
			return nil, w.gaveUp(ctx)
		}
	}
	defer func() {
		<-t.waiting
		if err != nil {
			t.q.wakeFirst(t.place) // if this one looked for others, the next one does
		}
	}()
	if err := t.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := ddb.Merge(ctx, t.lease.Context())
	defer cancel()
	ctx, closed := ddb.Merge(ctx, t.q.open.Context())
	defer closed()

	turn, err := w.wait(ctx)
	if w.looks > 1 {
		t.q.core.Observe.Waited(context.WithoutCancel(ctx), telemetry.Ticket, telemetry.ToProcess, time.Since(w.begun))
	}
	if err == nil {
		return turn, nil
	}
	if over := t.usable(); over != nil {
		return nil, over // more than that the waiting ended
	}
	if ctx.Err() != nil {
		return nil, w.gaveUp(ctx)
	}
	return nil, err
}

// waiter is one call of Wait.
type waiter struct {
	*Ticket
	begun    time.Time
	looks    int
	last     line
	patience time.Duration // with the answer to a look
}

// gaveUp says for whom, and how long, a call has waited whose context has ended.
func (w *waiter) gaveUp(ctx context.Context) error {
	return ddb.Join(w.q.locked(w.place, w.last), ddb.Waited(time.Since(w.begun), ddb.CtxError(ctx)))
}

// lookTimeout is how long the answer to a look is waited for at first: one that
// is lost must not cost more than a moment of a turn. Behind a service that is
// slower than that, each look without an answer doubles it for the next.
const lookTimeout = time.Second

// look reads the queue.
func (w *waiter) look(ctx context.Context) (*look, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	asked := time.Now()
	l, err := w.q.look(ctx, w.place)
	if err != nil && ctx.Err() != nil {
		w.patience = min(2*w.patience, w.q.cfg.Table.AttemptTimeout)
	}
	if err != nil {
		return nil, err
	}
	return w.share(l, asked), nil
}

// share shows an answer to all of this process who wait, and returns the latest that
// this one knows of.
func (w *waiter) share(l line, asked time.Time) *look {
	w.q.tell(w.place, l, asked)
	if seen := w.told(); seen != nil {
		return seen
	}
	return &look{l, time.Now()}
}

func (w *waiter) wait(ctx context.Context) (*Turn, error) {
	seen := w.told()
	for {
		if seen == nil {
			var err error
			if seen, err = w.look(ctx); ctx.Err() != nil && err != nil || lasting(err) {
				return nil, err
			}
		}
		pause := w.q.cfg.Wait.Max // after a look without an answer
		if seen != nil {
			w.looks++
			turn, next, err := w.use(ctx, *seen)
			if turn != nil || err != nil {
				return turn, err
			}
			pause = next
		}
		if seen = w.told(); seen != nil {
			continue
		}
		if limit := w.q.cfg.Wait.Attempts; limit > 0 && w.looks >= limit {
			return nil, w.q.locked(w.place, w.last)
		}
		if w.q.core.SleepOr(ctx, pause, w.news); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		seen = w.told()
	}
}

// use draws the conclusion from a look: the turn, or how long to pause.
func (w *waiter) use(ctx context.Context, seen look) (*Turn, time.Duration, error) {
	for {
		w.last = seen.line
		w.judge.see(seen.line, seen.at)
		ahead, present := seen.line.before(w.id, w.number)
		if !present {
			return nil, 0, w.missing(ctx, seen.line)
		}
		if len(ahead) == 0 {
			// Later tickets are greater: it stays our turn while the entry is valid.
			if err := w.usable(); err != nil {
				return nil, 0, err
			}
			return &Turn{w.Ticket}, 0, nil
		}
		now := time.Now()
		live, rest := w.judge.sort(ahead, w.q.clock(), now)
		w.pace.See(len(ahead), now)
		if live > 0 {
			pause := w.q.relies(w.Ticket, ahead)
			if pause == 0 {
				// Who is next looks often, the others halfway to being next.
				pause = w.pace.Delay(live, now, pace.Line{Near: 1, Min: w.q.cfg.Wait.Min, Max: w.q.cfg.Wait.Max, Limit: w.q.cfg.Lease / 3, Quarters: 2})
			}
			return nil, min(pause, rest+w.q.cfg.Wait.Min), nil
		}
		// We are the first who is alive. That those ahead are stale is not
		// enough: only their removal settles it against a renewal under way.
		asked := time.Now()
		l, err := w.q.pass(ctx, w.place, w.Ticket, ahead)
		switch {
		case err == nil:
			seen = *w.share(l, asked)
		case ctx.Err() != nil || lasting(err):
			return nil, 0, err
		default:
			return nil, w.q.cfg.Wait.Max, nil
		}
	}
}
