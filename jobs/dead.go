package jobs

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Dead is a job that failed for good.
type Dead[J any] struct {
	ID       string
	Value    J
	Attempts int
	Error    string    // of the last attempt, shortened
	Enqueued time.Time // as of [JobInfo]
	Died     time.Time // when it failed for good, by the clock of who found it; zero: before that was noted
}

// maxError is how much of an error's text is kept, in bytes.
const maxError = 1000

// shorten is as much of a text as is kept, in whole characters: DynamoDB
// refuses what is not UTF-8.
func shorten(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxError)], "\uFFFD")
	for len(s) > maxError {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

func (s *store) deadRow(resource string, j jobRow, why string) ddb.Item {
	row := j.at(deadPrefix+resource, j.id)
	delete(row, aUnique) // which has ended
	row[aDied] = ddb.Number(ddb.Seconds(s.table.Clock()))
	if why != "" {
		row[aError] = ddb.Text(shorten(why))
	}
	return row
}

// Dead iterates over the dead letters of a resource, those enqueued first
// first. A value that is not a J comes with ErrSchema, and the iteration goes
// on; every other error ends it.
func (q *Queue[J]) Dead(ctx context.Context, resource string) iter.Seq2[Dead[J], error] {
	return func(yield func(Dead[J], error) bool) {
		for j, err := range q.s.jobRows(ctx, deadPrefix, resource) {
			d := Dead[J]{ID: j.id, Attempts: j.attempts, Error: j.failure, Enqueued: j.enqueued(), Died: j.died}
			if err == nil {
				value, unreadable := decode[J](resources.Text(j.row, aJob))
				if d.Value = *value; unreadable != nil {
					err = fmt.Errorf("dead letter %s: %w", d.ID, unreadable)
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Requeue puts a dead letter at the end of its resource's line, with all its
// attempts before it. ErrNotFound if there is no dead letter with this id, ErrConflict if it
// was requeued and has died again meanwhile. Two requests.
func (q calls) Requeue(ctx context.Context, resource, id string) error {
	place := q.s.nextPlace(newLot())
	trace := ddb.Item{}
	err := q.s.takeDeadLetter(ctx, resource, id, func(c *change, j jobRow) {
		j.attempts = 0
		row := j.waiting(resource, place)
		trace[resources.PK], trace[resources.SK] = row[resources.PK], row[resources.SK]
		c.counts.Queued, c.writes = 1, append(c.writes, q.s.table.Core.PutOf(row))
	}, trace)
	if err == nil {
		q.s.wake(resource)
		q.s.mark(ctx, resource)
	}
	return err
}

// Discard removes a dead letter, also one that cannot be read. Errors and requests as of
// Requeue.
func (q calls) Discard(ctx context.Context, resource, id string) error {
	return q.s.takeDeadLetter(ctx, resource, id, func(c *change, j jobRow) {
		q.s.unmark(c, resource, j)
		c.keep(q.s.kept(resource, j, StateDiscarded))
	}, nil)
}

// takeDeadLetter takes a dead letter away, as it was read, and does more in the same
// transaction. trace, if set, is the key of a row that nothing else makes.
func (s *store) takeDeadLetter(ctx context.Context, resource, id string, more func(*change, jobRow), trace ddb.Item) error {
	if err := nesting.Effect(ctx, "a call on a dead letter", afterwards); err != nil {
		return err
	}
	key, err := s.jobKey(deadPrefix, resource, id)
	if err != nil {
		return err
	}
	row, err := s.table.Core.Get(ctx, key)
	if err != nil {
		return err
	}
	missing := fmt.Errorf("%w: dead letter %q of resource %q", repo.ErrNotFound, id, resource)
	if len(row) == 0 {
		return missing
	}
	j, err := parseJob(row)
	if err != nil && trace != nil {
		return err // there is no use in one in line that cannot be read
	}
	j.id = id
	w := s.table.Core.NewWrite()
	w.IfExists(resources.PK)
	w.IfSeen(row, aDied, aAttempts) // and not one that has died again
	c := change{counts: resources.Counts{Dead: -1}, size: 2 * j.size, writes: []types.TransactWriteItem{ddb.DeleteOf(w.Delete(key))}}
	more(&c, j)
	res := s.submitFor(ctx, resource, c, key, func(row ddb.Item) bool { return len(row) > 0 && ddb.Equal(row[aDied], j.row[aDied]) })
	if res.Outcome == ddb.Condition && res.Clean && !res.Unjudged {
		if len(res.Images[0].Item) > 0 {
			return fmt.Errorf("%w: dead letter %q of resource %q was requeued, and has died again", repo.ErrConflict, id, resource)
		}
		return missing // somebody else was faster
	}
	if res.Outcome == ddb.Condition && trace != nil && s.wasMade(ctx, trace) {
		return nil // by an earlier attempt, or a copy of it
	}
	return resources.Plain(resource, res)
}

// deadLetter moves a job's row to the dead letters, if it is as it was read:
// that of a holder who died in the last attempt, or one that cannot be read.
func (s *store) deadLetter(ctx context.Context, resource string, j jobRow, why string) error {
	w := s.table.Core.NewWrite()
	j.asRead(w)
	c := change{counts: resources.Counts{Dead: 1}, size: 2 * j.size, writes: []types.TransactWriteItem{
		ddb.DeleteOf(w.Delete(j.key())), s.table.Core.PutOf(s.deadRow(resource, j, why))}}
	if j.state == running {
		c.counts.Running = -1
	} else {
		c.counts.Add(j.counted())
	}
	s.free(&c, resource, j)
	res := s.submit(ctx, resource, c)
	if res.Outcome == ddb.Refused {
		return res.Err
	}
	if res.Outcome == ddb.Applied {
		s.table.Core.Observe.DeadLettered(ctx, resource, j.id, j.attempts, why)
	}
	return nil // whoever did it, or the job went on: the next look tells
}
