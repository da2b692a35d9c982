package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// A look at the line reads its head, where what runs and what is next stand.
// Its cost does not depend on the length of the line: it ends after some rows
// that cannot be started. What stands behind them, such as the job of a dead
// holder behind thousands that others have put in front, is found by a second
// look, which reads one page a third of a lease and goes on where it ended.
const (
	minPage  = 4   // rows read beyond those that run and those wanted
	nextPage = 100 // rows of each further page
	maxIdle  = 200 // rows that cannot be started looked at for one that can
	fullIdle = 16  // the same where the limit is used up: those who run stand in front
	deepPage = 1000
	spread   = 2 * time.Second // how long a race is remembered
	breadth  = 3               // with 1, others have taken every fifth of those that were picked
)

// reading is one reading of a line.
type reading struct {
	s    *store
	r    *resources.Row
	st   *localResource
	want int  // jobs wanted
	room int  // of them, how many that wait
	each bool // others take one for each place, and not for those that are free alone

	rows  []jobRow  // to be started
	runs  int       // jobs that run, and whose holders live
	idle  int       // rows that cannot be started
	moved bool      // a row was taken out of the line
	since time.Time // the first that waits does so since then
	end   bool      // there is no more than was judged
	next  time.Time // when the first of the rows that cannot be started could be; zero: that is not known
	odd   bool      // a row could not be read
}

// resting reports whether a look at a resource would find nothing, as one before it.
func (s *store) resting(r resources.Row) bool {
	st := s.locals.Get(r.Name)
	if st == nil {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	full := r.Full()
	return full == st.restFull && (full || r.Changes == st.restAt) && s.toCome(st.restUntil, s.table.Clock())
}

// note notes what a look has found: since when the first job waits, and when it makes
// sense to look again if there was nothing to start.
func (l *reading) note(jobs int) {
	full, until := l.r.Full(), time.Time{}
	if len(l.rows) == 0 && !l.moved && !l.odd {
		now := l.s.table.Clock()
		// What is started from now on is not dead before a lease has passed.
		until = earlier(l.next, now.Add(l.s.cfg.Lease+l.s.cfg.ClockSkew))
		if whole := l.end || full && l.runs >= jobs; !whole {
			until = earlier(until, now.Add(l.s.cfg.Lease/3)) // it is time then to look further
		}
	}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	l.st.oldest, l.st.restUntil, l.st.restAt, l.st.restFull = l.since, until, l.r.Changes, full
}

// newReading is the reading of a line for jobs to start, at most want. spreads says that
// it finds more, of which some are picked: others start jobs of this line, too, the same if
// all want the oldest. As many as there is room for are about to be started, in whichever
// order; beside those who end one and start the next, breadth times as many as may run.
func (s *store) newReading(st *localResource, r *resources.Row, want int, how manner) (l *reading, spreads bool) {
	l = &reading{s: s, r: r, st: st, want: want, end: true}
	st.mu.Lock()
	spreads = time.Since(st.raced) < spread
	st.mu.Unlock()
	l.each = spreads && how == follows
	switch {
	case l.each:
		l.want = min(breadth*r.Limit, nextPage)
	case spreads:
		l.want = min(max(r.Limit-r.Running, want), nextPage)
	}
	l.room = l.places()
	return l, spreads
}

// places is how many of the jobs that wait are looked for.
func (l *reading) places() int {
	free := max(l.r.Limit-l.r.Running, 0)
	if l.each && free > 0 {
		return l.want
	}
	return min(free, l.want)
}

// readLine finds jobs of a resource to start, at most want.
func (s *store) readLine(ctx context.Context, st *localResource, r *resources.Row, want int, how manner) (*reading, error) {
	l, spreads := s.newReading(st, r, want, how)
	ending := st.ending()
	if how == follows {
		ending = max(ending, 1) // the end that it goes with may come to wait a moment later
	}
	jobs := r.Jobs()
	first := min(jobs+min(l.want, max(l.room, 1))+minPage, nextPage)
	read := 0
	for row, err := range s.table.Rows(ctx, jobsPrefix+r.Name, resources.Page{First: first, Next: nextPage}) {
		if err != nil {
			return nil, err
		}
		read++
		j, err := parseJob(row)
		if l.noteWaiting(j, err); l.end {
			l.judge(ctx, j, err)
			l.end = !l.enough(jobs)
		}
		// The first page has one more that waits, where there is one: that is looked at
		// for its age.
		if !l.end && (!l.since.IsZero() || read >= first) {
			break
		}
	}
	if n := l.runs + len(r.Permits) - ending; n > r.Running {
		r.Running = n // others have started some since the resource was read
		l.rows = fitting(l.rows, l.places())
	}
	l.note(jobs)
	if l.each && len(l.rows) > 0 { // of the first level alone: what is urgent comes first
		first := l.rows[0].level()
		l.rows = slices.DeleteFunc(l.rows, func(j jobRow) bool { return j.level() != first })
	}
	if spreads && len(l.rows) > want {
		at := rand.IntN(len(l.rows))
		l.rows = append(l.rows[at:], l.rows[:at]...)[:want]
	}
	return l, nil
}

// enough reports whether reading on has no use. jobs is how many run.
func (l *reading) enough(jobs int) bool {
	full := l.r.Full()
	return len(l.rows) >= l.want || l.idle >= maxIdle || full && (l.runs >= jobs || l.idle >= fullIdle)
}

// further looks at one page behind the head, if it is time for that.
func (l *reading) further(ctx context.Context) error {
	now, st := l.s.table.Clock(), l.st
	st.mu.Lock()
	after, early := st.behind, l.s.toCome(st.deep.Add(l.s.cfg.Lease/3), now)
	if !early {
		st.deep = now
	}
	st.mu.Unlock()
	if early {
		return nil
	}
	n, last := 0, ""
	for row, err := range l.s.table.Rows(ctx, jobsPrefix+l.r.Name, resources.Page{After: after, First: deepPage, Next: deepPage}) {
		if err != nil {
			return err
		}
		j, err := parseJob(row)
		l.judge(ctx, j, err)
		if n++; n >= deepPage || len(l.rows) >= l.want {
			last = j.place
			break
		}
	} // or that was the end of the line
	st.mu.Lock()
	defer st.mu.Unlock()
	st.behind = last
	return nil
}

// judge sorts a row.
func (l *reading) judge(ctx context.Context, j jobRow, err error) {
	now := l.s.table.Clock()
	switch {
	case err != nil:
		l.idle++
		l.odd = true
		l.quarantine(ctx, j, err)
	case j.state == running && !j.until.Add(l.s.cfg.ClockSkew).Before(now):
		l.runs++
		l.next = earlier(l.next, j.until.Add(l.s.cfg.ClockSkew))
	case j.state == running && l.s.spent(j):
		why := fmt.Sprintf("its holder %s died in attempt %d", stored.Record{By: j.owner}.Owner(), j.attempts)
		if err := l.s.deadLetter(ctx, l.r.Name, j, why); err == nil {
			l.moved = true
		}
	case j.state == running:
		l.rows = append(l.rows, j)
	case j.state != queued:
		l.idle++
		l.odd = true
		l.unreadable(ctx, j, fmt.Errorf("attribute %q is %q", aState, j.state))
	case j.notBefore.After(now):
		l.idle++
		l.next = earlier(l.next, j.notBefore)
	case l.room <= 0:
		l.idle++
	default:
		l.room--
		l.rows = append(l.rows, j)
	}
}

// noteWaiting notes since when the first job waits that is due: its place tells.
func (l *reading) noteWaiting(j jobRow, err error) {
	if err == nil && j.state == queued && l.since.IsZero() && !j.notBefore.After(l.s.table.Clock()) {
		l.since, _ = madeAt(withoutLevel(j.place))
	}
}

// quarantine takes a row that cannot be read out of the line, into the dead
// letters, so that the others go on: at once if it waits; if it runs, when it was
// seen for a whole lease, in which nobody can have renewed it. A row that is
// neither was not made by this package, and stays.
func (l *reading) quarantine(ctx context.Context, j jobRow, why error) {
	first := l.unreadable(ctx, j, why)
	if j.state != queued && (j.state != running || l.s.table.Clock().Sub(first) < l.s.cfg.Lease+l.s.cfg.ClockSkew) {
		return
	}
	if j.id == "" {
		j.id = j.place
	}
	if err := l.s.deadLetter(ctx, l.r.Name, j, why.Error()); err == nil {
		l.moved = true
	}
}

// skipped logs and counts something broken that is left aside, so that the rest
// goes on.
func (s *store) skipped(ctx context.Context, kind, event, msg, resource string, which ...slog.Attr) {
	s.table.Core.Observe.Skipped(ctx, kind)
	s.table.Core.Observe.Event(ctx, slog.LevelError, event, msg, append(which, slog.String("resource", resource))...)
}

// maxNoted bounds what is remembered of rows that cannot be read.
const maxNoted = 1000

// unreadable logs and counts a row that cannot be read, once, and returns when it was
// first seen.
func (l *reading) unreadable(ctx context.Context, j jobRow, why error) time.Time {
	l.st.mu.Lock()
	first, known := l.st.noted[j.place]
	if !known {
		if first = l.s.table.Clock(); l.st.noted == nil || len(l.st.noted) >= maxNoted {
			l.st.noted = map[string]time.Time{}
		}
		l.st.noted[j.place] = first
	}
	l.st.mu.Unlock()
	if !known {
		l.s.skipped(ctx, "job", telemetry.EventQuarantine, "a job's row cannot be read", l.r.Name, slog.String("place", j.place), slog.String("job", j.id), slog.String("error", why.Error()))
	}
	return first
}
