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
type Counted struct{ Queued, Running, Permits, Dead int }

// OK reports whether nothing was found to be wrong. Of a resource that was Changing
// nothing was found.
func (t Tally) OK() bool {
	return t.Changing || t.Queued == t.Counted.Queued && t.Running == t.Counted.Running+t.Counted.Permits && t.Dead == t.Counted.Dead
}

func (t Tally) String() string {
	paused := ""
	if !t.Paused.IsZero() {
		paused = "; paused since " + t.Paused.UTC().Format(time.RFC3339)
	}
	changing := ""
	if t.Changing {
		changing = "; changing"
	}
	return fmt.Sprintf("resource %q: counters %d queued, %d running, %d dead; rows %d queued, %d running, %d dead; %d permits%s%s",
		t.Name, t.Queued, t.Running, t.Dead, t.Counted.Queued, t.Counted.Running, t.Counted.Dead, t.Counted.Permits, paused, changing)
}

// Format prints it as String does.
func (t Tally) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// audits is how often the rows of a resource are counted before it is said to
// change all the time.
const audits = 5

// Audit counts the rows of every resource and compares them with the counters.
// It may run beside work: every change of a resource is numbered, and what
// changed meanwhile is counted again. A resource whose row cannot be read comes
// with ErrSchema, and the audit goes on. It reads the whole table, at least 16
// requests and four per resource.
func (s *store) Audit(ctx context.Context) iter.Seq2[Tally, error] {
	return func(yield func(Tally, error) bool) {
		for r, err := range s.Resources(ctx) {
			t := Tally{Resource: r}
			if err == nil {
				t, err = s.audit(ctx, r.Name)
			}
			if !yield(t, err) || err != nil && !errors.Is(err, repo.ErrSchema) {
				return
			}
		}
	}
}

func (s *store) audit(ctx context.Context, name string) (t Tally, err error) {
	for range audits {
		before, err := s.table.Read(ctx, name)
		if err != nil {
			return t, err
		}
		t = Tally{Resource: public(before), Counted: Counted{Permits: len(before.Permits)}}
		for row, err := range s.table.Rows(ctx, jobsPrefix+name, resources.Page{}) {
			if err != nil {
				return t, err
			}
			if resources.Text(row, aState) == running {
				t.Counted.Running++
			} else {
				t.Counted.Queued++
			}
		}
		for _, err := range s.table.Rows(ctx, deadPrefix+name, resources.Page{}) {
			if err != nil {
				return t, err
			}
			t.Counted.Dead++
		}
		after, err := s.table.Read(ctx, name)
		if err != nil {
			return t, err
		}
		if after.Changes == before.Changes {
			return t, nil
		}
	}
	t.Changing = true
	return t, nil
}
