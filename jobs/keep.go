package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/jsontype"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// What became of a job with Keep has a row, made in the transaction that takes the job away.
// It has no condition: that is the job's. So who finds the job gone, and the row with its own
// token, knows that its end was applied.

const keptPrefix = "KEPT#" // + resource; sort key: the job's id; has the table's TTL

// Attributes of what is kept. Package resources keeps these names free.
const (
	aKeep   = "keep"   // N, seconds: for how long; a job takes it along
	aResult = "result" // JSON, as of SetResult
	aEnded  = "ended"  // N, Unix seconds
)

// SetResult is what [Queue.Status] tells of the job when it is done, as JSON, if it is kept
// ([Keep]); otherwise it is dropped. It is written with Done or DoneIn, and with the nil of a
// handler of [Queue.Run]. The last call holds. ErrTooLarge if it does not fit an item,
// ErrSchema if it cannot be written as JSON. Nothing is sent.
func (j *job) SetResult(result any) error {
	if err := jsontype.Check(reflect.TypeOf(result)); err != nil {
		return fmt.Errorf("%w: the result of job %q: %w", repo.ErrSchema, j.row.id, err)
	}
	value, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("%w: the result of job %q, a %T, cannot be written as JSON: %w", repo.ErrSchema, j.row.id, result, redact.Error(err))
	}
	most := ddb.Diff{Set: []ddb.Attribute{{Name: aError, Value: ddb.Text(strings.Repeat("x", maxError+maxOwner))}, {Name: aResult, Value: ddb.Text(string(value))}}}
	if err := protocol.Of(j.s.table.Core).CheckSize(resources.RowKey(keptPrefix+j.resource, j.row.id), most); err != nil {
		return fmt.Errorf("result of job %q: %w", j.row.id, err)
	}
	text := string(value)
	j.result.Store(&text)
	return nil
}

// kept is the write of what became of a job; none, if it is not to be kept.
func (s *store) kept(resource string, j jobRow, state State) (part types.TransactWriteItem, some bool) {
	if j.keep <= 0 {
		return part, false
	}
	now := s.table.Clock()
	row := resources.RowKey(keptPrefix+resource, j.id)
	row[aID], row[aState], row[aAttempts] = ddb.Text(j.id), ddb.Text(string(state)), ddb.Integer(int64(j.attempts))
	row[aEnded], row[s.table.Core.Attr.TTL] = ddb.Number(ddb.Seconds(now)), ddb.Integer(now.Add(j.keep).Unix())
	if j.failure != "" {
		row[aError] = ddb.Text(j.failure)
	}
	return types.TransactWriteItem{Put: &types.Put{TableName: &s.table.Core.Name, Item: row}}, true
}

// keptDone is kept of a job that its handler has done.
func (j *job) keptDone() (part types.TransactWriteItem, some bool) {
	part, some = j.s.kept(j.resource, j.row, StateDone)
	if some {
		part.Put.Item[aToken] = ddb.Integer(j.token)
		if result := j.result.Load(); result != nil {
			part.Put.Item[aResult] = ddb.Text(*result)
		}
	}
	return part, some
}

// keep adds what became of a job, if it is to be kept.
func (c *change) keep(kept types.TransactWriteItem, some bool) {
	if some {
		c.writes, c.size = append(c.writes, kept), c.size+len(resources.Text(kept.Put.Item, aResult))
	}
}

// keptByUs reports whether what is kept of the job was written by this start's end.
func (j *job) keptByUs(ctx context.Context) bool {
	if j.row.keep <= 0 {
		return false
	}
	row, err := j.s.table.Core.Get(ctx, resources.RowKey(keptPrefix+j.resource, j.row.id))
	return err == nil && ddb.Equal(row[aToken], ddb.Integer(j.token))
}

// keepIn is kept in a transaction.
func (s *store) keepIn(all rows.Rows, resource string, j jobRow, write func() (types.TransactWriteItem, bool)) {
	if j.keep > 0 {
		s.rowIn(all, resources.RowKey(keptPrefix+resource, j.id)).Action = keeping{write: write}
	}
}

// keeping writes what became of a job, in a transaction that takes it away.
type keeping struct {
	rows.Traceless
	write func() (types.TransactWriteItem, bool)
}

// Write has no condition.
func (k keeping) Write(*ddb.Write) (types.TransactWriteItem, bool, error) {
	part, some := k.write()
	return part, some, nil
}

// State is how far a job has come.
type State string

// The states of a job. Of those after StateDead the row is kept for as long as [Keep] says.
const (
	StateQueued    State = "queued" // also one that waits for its time
	StateRunning   State = "running"
	StateDead      State = "dead" // a dead letter, until it is requeued or discarded
	StateDone      State = "done"
	StateCancelled State = "cancelled"
	StateDiscarded State = "discarded" // a dead letter was
)

// Status is what the table knows of a job.
type Status struct {
	ID        string
	State     State
	Attempts  int       // that were begun
	Error     string    // of the last attempt that failed, shortened
	NotBefore time.Time // when it is due, if it waits for that
	Ended     time.Time // when it was done, cancelled, discarded or became a dead letter, by the clock of who did it; zero: it goes on
	Until     time.Time // when what is kept of it is forgotten; zero: it is there, or a dead letter

	result string
}

// Result reads what SetResult has left into v, a pointer. ErrNotFound if there is none,
// ErrSchema if it does not fit.
func (s Status) Result(v any) error {
	if s.result == "" {
		return fmt.Errorf("%w: job %q is %s and has no result", repo.ErrNotFound, s.ID, s.State)
	}
	if err := decodeInto(s.result, v); err != nil {
		return fmt.Errorf("%w: the result of job %q is not a %T: %w", repo.ErrSchema, s.ID, v, err)
	}
	return nil
}

// Status tells what became of a job, or how far it has come. ErrNotFound where the table
// knows nothing of its id: it never had such a job, or [Keep] was not given, or is over, or
// a program of a version without Keep has ended it. One request for one that has ended,
// half a read unit and more; otherwise two, and those of [Queue.Cancel] that look for it.
func (q calls) Status(ctx context.Context, resource, id string) (Status, error) {
	if _, err := q.s.jobKey(keptPrefix, resource, id); err != nil {
		return Status{}, err
	}
	if st, err := q.s.ended(ctx, resource, id); err != nil || st.State != "" {
		return st, err
	}
	j, err := q.s.findJob(ctx, resource, id)
	if errors.Is(err, repo.ErrNotFound) { // it may have ended between the two
		if st, ended := q.s.ended(ctx, resource, id); ended != nil || st.State != "" {
			return st, ended
		}
		return Status{}, err
	}
	if err != nil {
		return Status{}, err
	}
	st := Status{ID: id, State: StateQueued, Attempts: j.attempts, Error: j.failure, NotBefore: j.notBefore}
	if j.state == running {
		st.State, st.NotBefore = StateRunning, time.Time{}
	}
	return st, nil
}

// ended reads what is kept of a job, or its dead letter. No state: there is neither.
func (s *store) ended(ctx context.Context, resource, id string) (st Status, err error) {
	row, err := s.table.Core.Get(ctx, resources.RowKey(keptPrefix+resource, id))
	if err != nil {
		return st, err
	}
	if len(row) > 0 {
		if st, err = s.parseKept(row); err != nil || st.Until.After(s.table.Clock()) {
			return st, err
		}
	}
	if row, err = s.table.Core.Get(ctx, resources.RowKey(deadPrefix+resource, id)); err != nil || len(row) == 0 {
		return Status{}, err
	}
	j, err := parseJob(row)
	return Status{ID: id, State: StateDead, Attempts: j.attempts, Error: j.failure, Ended: j.died}, err
}

// parseKept reads the row of what became of a job.
func (s *store) parseKept(row ddb.Item) (st Status, err error) {
	st = Status{ID: resources.Text(row, aID), State: State(resources.Text(row, aState)), Error: resources.Text(row, aError), result: resources.Text(row, aResult)}
	attempts, err := resources.Integer(row, aAttempts, resources.MaxCount)
	if st.Attempts = int(attempts); err == nil {
		st.Ended, err = ddb.Time(row[aEnded])
	}
	if err == nil {
		st.Until, err = ddb.Time(row[s.table.Core.Attr.TTL])
	}
	if err == nil && st.State == "" {
		err = fmt.Errorf("attribute %q is missing", aState)
	}
	if err != nil {
		return Status{}, fmt.Errorf("%w: what is kept of job %q: %w", repo.ErrSchema, resources.Text(row, resources.SK), err)
	}
	return st, nil
}
