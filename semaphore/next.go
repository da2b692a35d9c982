package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// Next starts the oldest job of a resource that is due, or takes over one whose
// holder is dead. ErrNoWork if there is none, ErrBusy if the limit is used up.
// Three requests: a read of the resource, a query, and a transaction of two
// rows; some more where others start jobs of the resource at the same time, or
// where many at the head of the line are not due. The length of the line does
// not matter. Calls in one process for one resource follow each other.
//
// A job whose value cannot be read as a J, or whose decoding panics, is failed,
// and goes to the dead letters in the end; the next one is taken instead. A row
// that cannot be read goes to the dead letters, too, and is logged.
func (s *Semaphore[J]) Next(ctx context.Context, resource string) (*Job[J], error) {
	j, err := s.startNext(ctx, resource)
	if err != nil {
		return nil, err
	}
	return &Job[J]{j}, nil
}

func (s *store) startNext(ctx context.Context, resource string) (_ *job, err error) {
	if err := s.checkName(resource); err != nil {
		return nil, err
	}
	ctx, told := s.core.Observe.Call(ctx, telemetry.Job, "Next")
	told.Key(func() string { return resource })
	defer func() {
		failed := err
		if errors.Is(err, ErrNoWork) || errors.Is(err, ErrBusy) {
			failed = nil // the usual answer of a line without work
		}
		told.End(&failed)
	}()
	ctx, over, err := s.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	defer queueUp(ctx, &s.station(resource).turn)()
	for {
		r, err := s.readResource(ctx, resource)
		if err != nil {
			return nil, err
		}
		jobs, err := s.startSome(ctx, &r, 1, false)
		if err != nil {
			return nil, err
		}
		if err := s.deliver(ctx, jobs[0]); err == nil {
			if err := s.unlessClosed(jobs[0]); err != nil {
				return nil, err
			}
			return jobs[0], nil
		} else if ctx.Err() != nil || gone(err) {
			return nil, fmt.Errorf("resource %q: no job: %w", resource, ddb.Join(err, ddb.CtxError(ctx)))
		}
	}
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

// looks is how often a line is looked at that moves.
const looks = 4

// startSome starts up to n jobs, at least one if err is nil, from what is known of
// the resource, which may be out of date and is brought up to date. One that yields leaves
// the jobs to others who start some at the same time.
func (s *store) startSome(ctx context.Context, r *Resource, n int, yields bool) ([]*job, error) {
	st := s.station(r.Name)
	for range looks {
		if !r.Paused.IsZero() {
			return nil, r.busy()
		}
		if r.Queued == 0 && r.Running == len(r.permits) {
			break
		}
		if r.Running >= r.Limit && len(r.permits) > 0 { // the permits of the dead are in the way
			removed, err := s.removeExpired(ctx, *r)
			if err == nil && removed {
				*r, err = s.readResource(ctx, r.Name)
			}
			if err != nil {
				return nil, err
			}
		}
		l, err := s.lookAt(ctx, st, r, n)
		if err != nil {
			return nil, err
		}
		// The limit is used up by more than what was found to run, or there is more
		// in line than was looked at.
		hidden := r.Running >= r.Limit && l.runs < r.Running-len(r.permits)
		if len(l.rows) == 0 && !l.moved && (hidden || !l.end && r.Running < r.Limit) {
			was := *r
			if *r, err = s.readResource(ctx, r.Name); err != nil {
				return nil, err
			}
			if r.changes != was.changes && r.Running < r.Limit {
				continue // a job has ended between the two reads
			}
			if err := l.further(ctx); err != nil {
				return nil, err
			}
		}
		if len(l.rows) > n {
			l.rows = l.rows[:n]
		}
		if len(l.rows) == 0 && !l.moved {
			break
		}
		jobs, raced, err := s.start(ctx, r, l.rows, yields)
		if raced {
			st.mu.Lock()
			st.raced = time.Now()
			st.mu.Unlock()
		}
		if len(jobs) > 0 || err != nil {
			return jobs, err
		}
		if raced && yields {
			break
		}
		if *r, err = s.readResource(ctx, r.Name); err != nil {
			return nil, err
		}
	}
	if r.Running >= r.Limit {
		return nil, r.busy()
	}
	return nil, fmt.Errorf("resource %q: %w", r.Name, ErrNoWork)
}
