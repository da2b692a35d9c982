package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Tally compares the counters of a resource with its rows.
type Tally struct {
	Resource         // the counters
	Counted  Counted // the rows
	Changing bool    // it changed all the time: the two do not belong together
}

// Counted is what the rows of a resource add up to.
type Counted struct{ Queued, Later, Running, Permits, Dead int } // Later are among Queued

// OK reports whether nothing was found to be wrong. Of a resource that was Changing
// nothing was found.
func (t Tally) OK() bool {
	return t.Changing || t.Queued == t.Counted.Queued && t.Later == t.Counted.Later && t.Running == t.Counted.Running+t.Counted.Permits && t.Dead == t.Counted.Dead
}

func (t Tally) String() string {
	paused := ""
	if !t.Paused.IsZero() {
		paused = "; paused since " + t.Paused.UTC().Format(time.RFC3339)
	}
	later := ""
	if t.Later+t.Counted.Later > 0 {
		later = fmt.Sprintf("; of those queued %d for later, rows %d", t.Later, t.Counted.Later)
	}
	changing := ""
	if t.Changing {
		changing = "; changing"
	}
	return fmt.Sprintf("resource %q: counters %d queued, %d running, %d dead; rows %d queued, %d running, %d dead; %d permits%s%s%s",
		t.Name, t.Queued, t.Running, t.Dead, t.Counted.Queued, t.Counted.Running, t.Counted.Dead, t.Counted.Permits, later, paused, changing)
}

// Format prints it as String does.
func (t Tally) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// audits is how often the rows of a resource are counted before it is said to
// change all the time.
const audits = 5

// Audit counts the rows of every resource and compares them with the counters.
// It may run beside work: every change of a resource is numbered, and what
// changed meanwhile is counted again. A resource whose row cannot be read comes
// with ErrSchema, and the audit goes on. It reads the whole table, at least 32
// requests and three per resource.
func (q calls) Audit(ctx context.Context) iter.Seq2[Tally, error] {
	return func(yield func(Tally, error) bool) {
		for shard := range resources.Shards {
			for t, err := range q.s.auditShard(ctx, shard) {
				if !yield(t, err) || err != nil && !errors.Is(err, repo.ErrSchema) {
					return
				}
			}
		}
	}
}

// auditShard counts the rows of the resources of a shard. Jobs that wait for their time are
// in one partition for all of them, which is read once, but for resources that change.
func (s *store) auditShard(ctx context.Context, shard int) iter.Seq2[Tally, error] {
	return func(yield func(Tally, error) bool) {
		var all []resources.Row
		for r, err := range s.table.InShard(ctx, shard, resources.Page{}) {
			if err == nil {
				all = append(all, r)
			} else if !yield(Tally{Resource: public(r)}, err) || r.Name == "" {
				return
			}
		}
		later, err := s.countLater(ctx, shard)
		if err != nil {
			yield(Tally{}, err)
			return
		}
		for _, r := range all {
			if t, err := s.audit(ctx, r, later[r.Name]); !yield(t, err) {
				return
			}
		}
	}
}

// countLater counts the jobs of a shard that wait for their time, by resource.
func (s *store) countLater(ctx context.Context, shard int) (map[string]int, error) {
	all := map[string]int{}
	for row, err := range s.table.Rows(ctx, laterShard(shard), resources.Page{}) {
		if err != nil {
			return nil, err
		}
		all[resources.Text(row, aResource)]++
	}
	return all, nil
}

// audit compares a resource, as it was read, with its rows, of which those that wait for
// their time were counted after that. It is read again where it has changed meanwhile.
func (s *store) audit(ctx context.Context, r resources.Row, later int) (t Tally, err error) {
	for range audits {
		t = Tally{Resource: public(r)}
		if t.Counted, err = s.countRows(ctx, r, later); err != nil {
			return t, err
		}
		before := r.Changes
		if r, err = s.table.Read(ctx, r.Name); err != nil {
			return t, err
		}
		if r.Changes == before {
			return t, nil
		}
		counted, err := s.countLater(ctx, resources.ShardOf(r.Name))
		if err != nil {
			return t, err
		}
		later = counted[r.Name]
	}
	t.Changing = true
	return t, nil
}

// countRows counts what belongs to a resource.
func (s *store) countRows(ctx context.Context, r resources.Row, later int) (c Counted, err error) {
	c = Counted{Permits: len(r.Permits), Queued: later, Later: later}
	for row, err := range s.table.Rows(ctx, jobsPrefix+r.Name, resources.Page{}) {
		if err != nil {
			return c, err
		}
		if resources.Text(row, aState) == running {
			c.Running++
		} else {
			c.Queued++
		}
	}
	for _, err := range s.table.Rows(ctx, deadPrefix+r.Name, resources.Page{}) {
		if err != nil {
			return c, err
		}
		c.Dead++
	}
	return c, nil
}
