package semaphore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Dead is a job that failed for good.
type Dead[J any] struct {
	ID       string
	Value    J
	Attempts int
	Error    string // of the last attempt, shortened
}

// maxError is how much of an error's text is kept, in bytes.
const maxError = 1000

func shorten(s string) string {
	if len(s) > maxError {
		return s[:maxError]
	}
	return s
}

func (s *Semaphore[J]) deadRow(resource string, l line, why string) ddb.Item {
	row := rowKey(deadPrefix+resource, l.id)
	row[aID], row[aJob], row[aAttempts] = ddb.Text(l.id), l.row[aJob], ddb.Integer(int64(l.attempts))
	if why != "" {
		row[aError] = ddb.Text(shorten(why))
	}
	return row
}

// Dead iterates over the dead letters of a resource, those enqueued first
// first. A value that is not a J comes with ErrSchema, and the iteration goes
// on; every other error ends it.
func (s *Semaphore[J]) Dead(ctx context.Context, resource string) iter.Seq2[Dead[J], error] {
	return func(yield func(Dead[J], error) bool) {
		if err := s.checkName(resource); err != nil {
			yield(Dead[J]{}, err)
			return
		}
		for row, err := range s.rows(ctx, deadPrefix+resource, 0) {
			var d Dead[J]
			if err != nil {
				yield(d, err)
				return
			}
			l, err := parseLine(row)
			d.ID, d.Attempts, d.Error = l.id, l.attempts, l.failure
			if err == nil {
				if err = json.Unmarshal([]byte(text(row, aJob)), &d.Value); err != nil {
					err = fmt.Errorf("%w: dead letter %s: its value is not a %T: %w", repo.ErrSchema, d.ID, d.Value, err)
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Requeue puts a dead letter at the end of its resource's line, with all its
// attempts before it. ErrNotFound if there is no dead letter with this id. Two
// requests.
func (s *Semaphore[J]) Requeue(ctx context.Context, resource, id string) error {
	return s.exhume(ctx, resource, id, func(l line) []types.TransactWriteItem {
		l.attempts = 0
		return []types.TransactWriteItem{s.core.PutOf(s.waiting(resource, l, s.ids.next(s.clock())))}
	}, aQueued)
}

// Discard removes a dead letter. ErrNotFound if there is none with this id. Two
// requests.
func (s *Semaphore[J]) Discard(ctx context.Context, resource, id string) error {
	return s.exhume(ctx, resource, id, func(line) []types.TransactWriteItem { return nil }, "")
}

// exhume takes a dead letter away, beside more writes; to is the counter that
// gains what the dead letters lose.
func (s *Semaphore[J]) exhume(ctx context.Context, resource, id string, more func(line) []types.TransactWriteItem, to string) error {
	key := repo.Key{Partition: deadPrefix + resource, Sort: id}
	raw, err := s.table.EncodeKey(key)
	if err == nil {
		err = s.checkName(resource)
	}
	if err != nil {
		return err
	}
	missing := fmt.Errorf("%w: dead letter %q of resource %q", repo.ErrNotFound, id, resource)
	row, err := s.core.Get(ctx, raw)
	if err != nil {
		return repo.Classify(err)
	}
	if len(row) == 0 {
		return missing
	}
	l, err := parseLine(row)
	if err != nil {
		return err
	}
	w := s.core.NewWrite()
	w.IfExists(pkName)
	remove := ddb.DeleteOf(w.Delete(raw))
	w = s.core.NewWrite()
	count(w, aDead, -1)
	count(w, aChanges, 1)
	if to != "" {
		count(w, to, 1)
	}
	in, err := w.Update(resourceKey(resource))
	if err != nil {
		return repo.Classify(err)
	}
	res := s.transact(ctx, ddb.Options{}, append([]types.TransactWriteItem{remove, ddb.UpdateOf(in)}, more(l)...)...)
	if res.Outcome == ddb.Condition && res.Clean {
		return missing // somebody else was faster
	}
	return s.plain(resource, res)
}

// JobInfo is what a line tells of a job.
type JobInfo struct {
	ID        string
	Running   bool
	Attempts  int
	Error     string    // of the last attempt that failed
	Owner     string    // who runs it
	Token     int64     // fencing token, while it runs
	Until     time.Time // when others may take it over, on the owner's clock
	NotBefore time.Time // when it is due after a failure; zero otherwise
}

// Jobs iterates over the jobs of a resource in the order of the line, without
// their values. One request per megabyte of jobs, one read unit per 4 KB.
func (s *Semaphore[J]) Jobs(ctx context.Context, resource string) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		if err := s.checkName(resource); err != nil {
			yield(JobInfo{}, err)
			return
		}
		for row, err := range s.rows(ctx, jobsPrefix+resource, 0) {
			var l line
			if err == nil {
				l, err = parseLine(row)
			}
			info := JobInfo{ID: l.id, Running: l.state == running, Attempts: l.attempts, Error: l.failure, NotBefore: l.notBefore}
			if info.Running {
				info.Owner, info.Token, info.Until = ddb.Lock{By: l.owner}.Owner(), l.token, l.until
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}
