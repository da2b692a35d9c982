package jobs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

const (
	// ahead is how far ahead a look reads for the next job that is due, and so how often
	// it is repeated where others may have jobs that nobody has told of.
	ahead = 30 * time.Second
	// What is read in one look, and moved: a row or two where nothing is due.
	firstDue, nextDue, mostDue = 2, 25, 100
)

// dueShard is what a process knows of the jobs of a shard that wait for their time.
type dueShard struct {
	looked time.Time // when it looked last; zero: never
	next   time.Time // when it makes sense to look again; zero: nothing is known to be due within ahead
	some   bool      // resources of the shard have such jobs, or may have
	mark   time.Time // as last read from the wake-up row
	marked time.Time // that this process has left there, or found
	read   bool      // that mark was read
	notes  int       // how often next was brought forward
}

// noteDue notes a job that this process has made for a time.
func (s *store) noteDue(resource string, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.due[resources.ShardOf(resource)]
	d.some, d.next = true, earlier(d.next, due)
	d.notes++
}

// noteLater notes whether the resources of a shard have such jobs.
func (s *store) noteLater(shard int, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[shard].some = some
}

// noteMark notes what the wake-up row says of a shard: a time at which all shall look, as
// somebody has said since the last look.
func (d *dueShard) noteMark(mark, now time.Time, skew time.Duration) {
	news := !mark.Equal(d.mark)
	if !d.read { // what is older than the first look, it has seen
		news = mark.After(now.Add(-ahead - skew))
	}
	d.read, d.mark = true, mark
	if news {
		d.some, d.next = true, now
	}
}

// looks reports whether it is time to look for what is due.
func (d *dueShard) looks(now time.Time) bool {
	known := !d.next.IsZero() && !d.next.After(now)
	return known || d.some && (now.Sub(d.looked) >= ahead || now.Before(d.looked))
}

// looksDue are the shards in which it is time to look for what is due.
func (s *store) looksDue(now time.Time) (shards []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.due {
		if s.due[i].looks(now) {
			shards = append(shards, i)
		}
	}
	return shards
}

// bringDue looks for the jobs of a shard whose time has come, and moves them into the
// lines of their resources. One query, which reads two rows where nothing is due. One that
// gives way leaves them to others who are at it at the same time.
func (s *store) bringDue(ctx context.Context, shard int, givesWay bool) (map[string]movedDue, error) {
	now := s.table.Clock()
	s.mu.Lock()
	notes := s.due[shard].notes
	s.mu.Unlock()
	due, next, err := s.readDue(ctx, shard, now)
	if err != nil {
		return nil, err
	}
	s.noteLook(shard, now, next, notes)
	done := s.moveDue(ctx, due, givesWay)
	for resource, m := range done {
		switch {
		case errors.Is(m.failed, repo.ErrSchema):
			st := s.localResource(resource)
			st.mu.Lock()
			st.unmoved = now.Add(s.cfg.Lease)
			st.mu.Unlock()
		case m.failed != nil:
			s.noteDue(resource, now)
		}
		if m.jobs > 0 {
			s.mark(ctx, resource)
		}
	}
	return done, nil
}

// unmovable reports whether the jobs of a resource whose time has come could not be put into
// its line a short while ago, because its row cannot be read: they must not hide others.
func (s *store) unmovable(resource string, now time.Time) bool {
	st := s.localResource(resource)
	st.mu.Lock()
	defer st.mu.Unlock()
	return s.toCome(st.unmoved, now)
}

// noteLook notes a look that has begun after so many notes, and when the next job is due
// that it has seen.
func (s *store) noteLook(shard int, began, next time.Time, notes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.due[shard]
	if d.notes != notes { // it may have come before what was noted since
		next = earlier(next, d.next)
	}
	if d.mark.After(began) {
		next = earlier(next, d.mark)
	}
	d.looked, d.next = began, next
}

// readDue reads the jobs of a shard whose time has come, and when the next one's comes, if
// that is near.
func (s *store) readDue(ctx context.Context, shard int, now time.Time) (due []jobRow, next time.Time, err error) {
	read := 0
	page := resources.Page{Before: placeBefore(now.Add(ahead)), First: firstDue, Next: nextDue}
	for row, err := range s.table.Rows(ctx, laterShard(shard), page) {
		if err != nil {
			return nil, next, err
		}
		j, err := parseLater(row)
		switch {
		case err != nil:
			s.oddLater(ctx, j, err)
		case j.notBefore.After(now):
			return due, j.notBefore, nil
		case s.unmovable(j.resource, now):
			continue
		default:
			due = append(due, j)
		}
		if read++; read >= mostDue {
			return due, now, nil
		}
	}
	return due, time.Time{}, nil
}

// placeBefore is before all places at a time, and behind all those before it.
func placeBefore(at time.Time) string { return placeAt(at.UnixMicro())[:15] }

// oddLater takes a row that cannot be read out of the way, into the dead letters; one
// that does not name its resource was not made by this package, and stays.
func (s *store) oddLater(ctx context.Context, j jobRow, why error) {
	s.skipped(ctx, "job", telemetry.EventQuarantine, "the row of a job that waits for its time cannot be read", j.resource, slog.String("place", j.place), slog.String("job", j.id), slog.String("error", why.Error()))
	if j.resource == "" {
		return
	}
	if j.id == "" {
		j.id = j.place
	}
	_ = s.deadLetter(ctx, j.resource, j, why.Error()) // the next look tries again
}

// bringInto is bringDue for who wants a job of one resource, if it is time to look, or
// anyhow. It reports whether jobs of the resource were moved, and then reads it again.
func (s *store) bringInto(ctx context.Context, r *resources.Row, anyhow bool) (moved bool, err error) {
	if r.Later == 0 {
		return false, nil
	}
	shard, now := resources.ShardOf(r.Name), s.table.Clock()
	s.mu.Lock()
	known := s.due[shard].next
	since := now.Sub(s.due[shard].looked)
	s.mu.Unlock()
	if due := !known.IsZero() && !known.After(now); !anyhow && !due && since >= 0 && since < s.cfg.Poll {
		return false, nil
	}
	all, err := s.bringDue(ctx, shard, false)
	m := all[r.Name]
	if moved = m.jobs > 0 || m.others; moved {
		*r, err = s.table.Read(ctx, r.Name)
	}
	return moved, cmp.Or(err, m.failed)
}

// bringAll moves what is due in all shards where it is time to look.
func (d *dispatcher) bringAll(ctx context.Context) error {
	var all error
	for _, i := range d.s.looksDue(d.s.table.Clock()) {
		if !d.s.servesIn(i) {
			continue
		}
		done, err := d.s.bringDue(ctx, i, true)
		for resource, m := range done {
			if m.jobs > 0 {
				d.brought(resource, m.jobs)
			}
			if m.failed != nil && !ddb.Conflicted(m.failed) && ctx.Err() == nil { // else others are at the same rows
				d.trouble(ctx, "putting a job whose time has come in line", resource, m.failed)
			}
		}
		all = errors.Join(all, err)
	}
	return all
}

// brought learns of jobs that were moved into a line because of a look.
func (d *dispatcher) brought(resource string, n int) {
	for range n {
		d.enqueued(resource)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = true
}
