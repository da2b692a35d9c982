package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// Next starts the oldest job of a resource that is due, or takes over one whose
// holder is dead. ErrNoWork if there is none, ErrBusy if the limit is used up.
// Three requests: a read of the resource, a query, and a transaction of two
// rows; some more where others start jobs of the resource at the same time. Where jobs of
// the resource wait for their time, a query more every Config.Poll, and before ErrNoWork.
// How many wait does not matter. Calls in one process for one resource follow each other.
//
// A job whose value cannot be read as a J, or whose decoding panics, is failed,
// and goes to the dead letters in the end; the next one is taken instead. A row
// that cannot be read goes to the dead letters, too, and is logged.
func (q *Queue[J]) Next(ctx context.Context, resource string) (*Job[J], error) {
	j, err := q.s.startNext(ctx, resource)
	if err != nil {
		return nil, err
	}
	return &Job[J]{j}, nil
}

func (s *store) startNext(ctx context.Context, resource string) (_ *job, err error) {
	if err := nesting.Effect(ctx, "jobs.Next", afterwards); err != nil {
		return nil, err
	}
	if err := s.table.CheckName(resource); err != nil {
		return nil, err
	}
	ctx, span := s.table.Core.Observe.Call(ctx, telemetry.Job, "Next", func() string { return resource })
	defer func() {
		failed := err
		if errors.Is(err, ErrNoWork) || errors.Is(err, ErrBusy) {
			failed = nil // the usual answer of a line without work
		}
		span.End(&failed)
	}()
	ctx, over, err := s.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	defer queueUp(ctx, &s.localResource(resource).turn)()
	for {
		r, err := s.table.Read(ctx, resource)
		if err != nil {
			return nil, err
		}
		jobs, err := s.startNow(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := s.deliver(ctx, jobs[0]); err == nil {
			if err := jobs[0].unlessClosed(); err != nil {
				return nil, err
			}
			return jobs[0], nil
		} else if ctx.Err() != nil || gone(err) {
			return nil, fmt.Errorf("resource %q: no job: %w", resource, ddb.Join(err, ddb.CtxError(ctx)))
		}
	}
}

// startNow starts a job of a resource, which was just read. Jobs whose time has come are put
// into its line before that, if it is time to look, or if there is no other.
func (s *store) startNow(ctx context.Context, r resources.Row) ([]*job, error) {
	if _, err := s.bringInto(ctx, &r, false); err != nil {
		return nil, err
	}
	jobs, none := s.startSome(ctx, &r, 1, insists)
	if !errors.Is(none, ErrNoWork) {
		return jobs, none
	}
	if moved, err := s.bringInto(ctx, &r, true); err != nil || !moved {
		return nil, cmp.Or(err, none)
	}
	return s.startSome(ctx, &r, 1, insists)
}

// queueUp waits for its turn among the callers of this process who do the same, but not
// for long: it is a courtesy. It returns how to let the next one in.
func queueUp(ctx context.Context, turn *lease.Exclusive) (done func()) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if turn.Lock(ctx) != nil {
		return func() {}
	}
	return turn.Unlock
}

// manner is how jobs are started beside others who start some of the resource.
type manner int

const (
	insists  manner = iota
	givesWay        // who has found them by a look leaves them to others
	follows         // together with the end of a job, which waits for it
)

// readings is how often a line is read that moves.
const readings = 4

// startSome starts up to n jobs, at least one if err is nil, from what is known of
// the resource, which may be out of date and is brought up to date.
func (s *store) startSome(ctx context.Context, r *resources.Row, n int, how manner) ([]*job, error) {
	st := s.localResource(r.Name)
	for range readings {
		if !r.Paused.IsZero() {
			return nil, busy(*r)
		}
		if r.Queued == 0 && r.Jobs() == 0 {
			break
		}
		rows, step, err := s.findRows(ctx, st, r, n, how)
		if err != nil {
			return nil, err
		}
		if step == stop {
			break
		}
		if step == readAgain {
			continue
		}
		jobs, raced, err := s.start(ctx, r, rows, how)
		if raced {
			st.noteRace()
		}
		st.noteStarts(len(jobs))
		if len(jobs) > 0 || err != nil {
			return jobs, err
		}
		if raced && how == givesWay {
			break
		}
		if err = s.renew(ctx, st, r, how); err != nil {
			return nil, err
		}
	}
	if r.Full() {
		return nil, busy(*r)
	}
	return nil, fmt.Errorf("resource %q: %w", r.Name, ErrNoWork)
}

// renew reads a resource for another try. The jobs whose end waits for this start leave
// their places to it.
func (s *store) renew(ctx context.Context, st *localResource, r *resources.Row, how manner) (err error) {
	if *r, err = s.table.Read(ctx, r.Name); err == nil && how == follows {
		r.Running = max(r.Running-st.ending(), 0)
	}
	return err
}

// step is what follows a reading of the line.
type step int

const (
	startRows  step = iota // which may be none, if a row was taken out of the line
	lookBehind             // the head says nothing of what may stand behind it
	readAgain
	stop // there is nothing to start
)

// judgeHead says what follows from what was found: nothing, although jobs may be hidden behind
// what was read, if the limit is used up by more than was found to run, or there is more in
// line.
func (l *reading) judgeHead() step {
	hidden := l.r.Full() && l.runs < l.r.Jobs() || !l.r.Full() && !l.end
	switch {
	case len(l.rows) > 0 || l.moved:
		return startRows
	case hidden:
		return lookBehind
	}
	return stop
}

// findRows reads the line for rows that can be started, n at most.
func (s *store) findRows(ctx context.Context, st *localResource, r *resources.Row, n int, how manner) ([]jobRow, step, error) {
	if err := s.makeRoom(ctx, r); err != nil {
		return nil, stop, err
	}
	if r.Levels && !r.Full() {
		if levels := st.othersTurn(); levels != nil {
			l, err := s.readLevels(ctx, st, r, levels)
			if err != nil {
				return nil, stop, err
			}
			if l != nil {
				return l.rows, startRows, nil
			}
		}
	}
	l, err := s.readLine(ctx, st, r, n, how)
	if err != nil {
		return nil, stop, err
	}
	next := l.judgeHead()
	if next == lookBehind {
		before := r.Changes
		if *r, err = s.table.Read(ctx, r.Name); err != nil {
			return nil, stop, err
		}
		if r.Changes != before && !r.Full() {
			return nil, readAgain, nil // a job has ended between the two reads
		}
		if err := l.further(ctx); err != nil {
			return nil, stop, err
		}
		if next = stop; len(l.rows) > 0 || l.moved {
			next = startRows
		}
	}
	return l.rows[:min(len(l.rows), n)], next, nil
}

// makeRoom removes the permits of the dead where they are in the way.
func (s *store) makeRoom(ctx context.Context, r *resources.Row) error {
	if !r.Full() || len(r.Permits) == 0 {
		return nil
	}
	removed, err := s.table.RemoveExpired(ctx, *r)
	if err == nil && removed {
		*r, err = s.table.Read(ctx, r.Name)
	}
	return err
}

// noteRace notes that others start jobs of the same line.
func (st *localResource) noteRace() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.raced = time.Now()
}
