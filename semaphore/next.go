package semaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// line is what a row of a line says.
type line struct {
	row       ddb.Item
	place     string // its sort key
	id        string
	state     string
	attempts  int
	token     int64 // of the start, while it runs
	until     time.Time
	notBefore time.Time
	owner     string
	failure   string
}

func parseLine(row ddb.Item) (line, error) {
	l := line{row: row, place: text(row, skName), id: text(row, aID), state: text(row, aState), owner: text(row, aOwner), failure: text(row, aError)}
	attempts, err := integer(row, aAttempts)
	l.attempts = int(attempts)
	if err == nil {
		l.token, err = integer(row, aToken)
	}
	for _, m := range []struct {
		name string
		to   *time.Time
	}{{aUntil, &l.until}, {aNotBefore, &l.notBefore}} {
		if v := row[m.name]; v != nil && err == nil {
			*m.to, err = ddb.Time(v)
		}
	}
	if err == nil && l.id == "" {
		err = fmt.Errorf("attribute %q is missing", aID)
	}
	if err != nil {
		return l, fmt.Errorf("%w: job %q: %w", repo.ErrSchema, l.place, err)
	}
	return l, nil
}

// seen demands that a job is as it was read.
func (l line) seen(w *ddb.Write) {
	w.IfSeen(l.row, aState, aAttempts, aToken, aUntil)
	w.IfExists(pkName)
}

// Next starts the oldest job of a resource that is due, or takes over one whose
// holder is dead. ErrNoWork if there is none, ErrBusy if the limit is used up.
// Three requests: a read of the resource, a query, and a transaction of two
// rows; one query more for each page of jobs that are not due.
//
// A job whose value cannot be read as a J is failed, and goes to the dead
// letters in the end; the next one is taken instead.
func (s *Semaphore[J]) Next(ctx context.Context, resource string) (*Job[J], error) {
	r, err := s.Resource(ctx, resource)
	if err != nil {
		return nil, err
	}
	return s.next(ctx, &r)
}

const (
	minPage = 4   // rows read beyond those that run
	maxLook = 200 // rows that do not run looked at for one that is due
	races   = 10  // looks at a line that moves
)

// next is Next from what is known of the resource, which may be out of date and
// is brought up to date.
func (s *Semaphore[J]) next(ctx context.Context, r *Resource) (*Job[J], error) {
	if err := r.check(s.cfg); err != nil {
		return nil, err
	}
	if r.Queued == 0 && r.Running == len(r.permits) {
		return nil, fmt.Errorf("resource %q: %w", r.Name, ErrNoWork)
	}
	for range races {
		job, again, err := s.scan(ctx, r)
		if job != nil || err != nil {
			return job, err
		}
		if !again {
			break
		}
		if *r, err = s.Resource(ctx, r.Name); err != nil {
			return nil, err
		}
	}
	if r.Running >= r.Limit {
		return nil, r.busy()
	}
	return nil, fmt.Errorf("resource %q: %w", r.Name, ErrNoWork)
}

// scan goes through the line once. again says that it moved meanwhile.
func (s *Semaphore[J]) scan(ctx context.Context, r *Resource) (_ *Job[J], again bool, _ error) {
	if r.Running >= r.Limit && len(r.permits) > 0 {
		p := &permits{core: s.core, cfg: s.cfg, clock: s.clock}
		if swept, err := p.sweep(ctx, *r); err != nil {
			return nil, false, err
		} else if swept {
			fresh, err := s.Resource(ctx, r.Name)
			if err != nil {
				return nil, false, err
			}
			*r = fresh
		}
	}
	jobs := r.Running - len(r.permits) // how many rows run
	looked, runs := 0, 0
	for row, err := range s.rows(ctx, jobsPrefix+r.Name, int32(min(max(jobs, 0)+minPage, 100))) { // small
		if err != nil {
			return nil, false, err
		}
		l, err := parseLine(row)
		if err != nil {
			return nil, false, err
		}
		now := s.clock()
		switch {
		case l.state == running && !l.until.Add(s.cfg.ClockSkew).Before(now):
			runs++
		case l.state == running && l.attempts >= s.cfg.Retry.Attempts:
			if err := s.bury(ctx, r.Name, l); err != nil {
				return nil, false, err
			}
			again = true
		case l.state == queued && (r.Running >= r.Limit || l.notBefore.After(now)):
		default:
			job, err := s.start(ctx, r, l)
			if job != nil || err != nil && !errors.Is(err, errRaced) {
				return job, false, err
			}
			again = true
		}
		// Where the limit is used up, only the end of the line, or all that run,
		// tell that nobody is dead.
		full := r.Running >= r.Limit
		if looked++; !full && looked-runs >= maxLook || full && runs >= r.Running-len(r.permits) {
			break // nothing more can be started, or not now
		}
	}
	return nil, again, nil
}

var (
	// errRaced: the job or its resource changed while it was started.
	errRaced = errors.New("raced")
	// errToken is errRaced where nothing but the resource's token was another.
	errToken = fmt.Errorf("%w: another token", errRaced)
)

// start starts a job that waits, or takes over one that runs, also where others
// draw tokens of the resource meanwhile.
func (s *Semaphore[J]) start(ctx context.Context, r *Resource, l line) (job *Job[J], err error) {
	err = errToken
	for n := 0; n < races && errors.Is(err, errToken); n++ {
		job, err = s.tryStart(ctx, r, l)
	}
	return job, err
}

// tryStart sends the transaction of a start, with the token that is next; the
// resource's counters change for a job that waits only.
func (s *Semaphore[J]) tryStart(ctx context.Context, r *Resource, l line) (*Job[J], error) {
	asked, now := time.Now(), s.clock() // the deadline counts from before the end is reckoned
	token := r.token + 1
	if r.token == 0 {
		token = now.UnixMicro() + 1
	}
	until := now.Add(s.cfg.Lease)
	owner := ddb.NewID(s.cfg.Owner)
	w := s.core.NewWrite()
	l.seen(w)
	w.Set(aState, ddb.Text(running))
	w.Set(aAttempts, ddb.Integer(int64(l.attempts+1)))
	w.Set(aToken, ddb.Integer(token))
	w.Set(aUntil, ddb.Number(ddb.Seconds(until)))
	w.Set(aOwner, ddb.Text(owner))
	job, err := w.Update(s.core.Key(l.row))
	if err != nil {
		return nil, repo.Classify(err)
	}
	w = s.core.NewWrite()
	if r.token == 0 {
		w.IfAbsent(aToken)
	} else {
		w.IfEqual(aToken, ddb.Integer(r.token))
	}
	w.Set(aToken, ddb.Integer(token))
	count(w, aChanges, 1)
	if l.state == queued {
		count(w, aQueued, -1)
		count(w, aRunning, 1)
		w.If(w.Name(aRunning) + " < " + w.Name(aLimit))
	}
	resource, err := w.Update(resourceKey(r.Name))
	if err != nil {
		return nil, repo.Classify(err)
	}
	res := s.transact(ctx, ddb.Options{Taking: true}, ddb.UpdateOf(job), ddb.UpdateOf(resource))
	switch res.Outcome {
	case ddb.Applied:
		r.token = token
		if l.state == queued {
			r.Queued, r.Running = r.Queued-1, r.Running+1
		}
		return s.hand(ctx, r.Name, l, token, until, asked)
	case ddb.Condition:
		if found := res.Images[0]; found.Failed && text(found.Item, aOwner) == owner {
			return s.hand(ctx, r.Name, l, token, until, asked) // an earlier attempt was applied
		}
		if found := res.Images[1]; found.Failed {
			fresh, err := parseResource(r.Name, found.Item)
			if err != nil {
				return nil, err
			}
			*r = fresh
			if err := r.check(s.cfg); err != nil {
				return nil, err
			}
			if !res.Images[0].Failed && (l.state == running || r.Running < r.Limit) {
				return nil, errToken
			}
		}
		return nil, errRaced
	}
	// If it was started all the same, it runs without a holder, and is taken
	// over when its lease is over. Nobody has worked on it.
	return nil, repo.Classify(fmt.Errorf("resource %q: a job could not be started: %w", r.Name, res.Err))
}

// hand gives a started job to its handler.
func (s *Semaphore[J]) hand(ctx context.Context, resource string, l line, token int64, until, sent time.Time) (*Job[J], error) {
	var value J
	err := json.Unmarshal([]byte(text(l.row, aJob)), &value) // may panic: nothing renews the job yet
	j := s.newJob(resource, l, token, until, sent)
	j.value = value
	if err != nil {
		err = fmt.Errorf("%w: its value is not a %T: %w", repo.ErrSchema, j.value, err)
		return nil, errors.Join(j.Fail(ctx, err), errRaced)
	}
	return j, nil
}

// bury moves a running job whose holder died in the last attempt to the dead
// letters.
func (s *Semaphore[J]) bury(ctx context.Context, resource string, l line) error {
	w := s.core.NewWrite()
	l.seen(w)
	res := s.transact(ctx, ddb.Options{}, ddb.DeleteOf(w.Delete(s.core.Key(l.row))),
		s.core.PutOf(s.deadRow(resource, l, fmt.Sprintf("its holder %s died in attempt %d", ddb.Lock{By: l.owner}.Owner(), l.attempts))),
		s.ending(resource, aDead))
	if res.Outcome == ddb.Refused {
		return repo.Classify(res.Err)
	}
	return nil // whoever did it, or the job went on: the next look tells
}
