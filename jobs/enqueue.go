package jobs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// nextPlace makes an id that sorts by time, and within one process by order.
func (s *store) nextPlace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, s.table.Clock().UnixMicro())
	return placeAt(s.last)
}

// placeAt is a place in line at a time in microseconds.
func placeAt(micros int64) string { return fmt.Sprintf("%015x-%s", micros, rand.Text()[:13]) }

// made are the ids that this package makes: they are places in line.
var made = regexp.MustCompile(`^[0-9a-f]{15}-[A-Z2-7]{13}$`)

// madeAt is when an id was made that this package makes.
func madeAt(id string) (at time.Time, ok bool) {
	if !made.MatchString(id) {
		return at, false
	}
	micros, _ := strconv.ParseInt(id[:15], 16, 64) // as many digits fit
	return time.UnixMicro(micros), true
}

// Option changes how one job is enqueued.
type Option func(*options)

// options is what options say of a job.
type options struct {
	id    string
	given bool
}

func optionsOf(given []Option) (e options, err error) {
	for i, o := range given {
		if o == nil {
			return e, fmt.Errorf("%w: option %d of the job is nil", repo.ErrConfig, i+1)
		}
		o(&e)
	}
	return e, nil
}

// WithID gives a job its id, so that settings it again, after
// ErrOutcomeUnknown, a crash of the producer or a message that came twice,
// leaves one job. It is one of your own, such as that of the message, or one
// that Enqueue has returned.
//
// An id of your own is remembered while its job is queued, runs or is a dead
// letter, and for 24 hours after it was done or discarded, whatever the value;
// this costs two write units when it is enqueued, and two when it ends, and a row of
// the table that its TTL removes. An id that Enqueue made
// costs nothing more, and may be repeated for nine minutes, with the same value
// and by a program with the same Limit: that is as long as DynamoDB remembers the
// request. After that Enqueue returns ErrOutcomeUnknown and sends nothing.
func WithID(id string) Option {
	return func(e *options) { e.id, e.given = id, true }
}

const (
	// rememberIDs is how long the id of a job is remembered that has ended.
	rememberIDs = 24 * time.Hour
	// repeatable is how long an id that Enqueue made may be repeated: less than the
	// ten minutes for which the service remembers a transaction.
	repeatable = 9 * time.Minute
)

// Enqueue puts a job at the end of a resource's line, and registers a resource
// that nobody has used. It returns the id of the job, also with
// ErrOutcomeUnknown: enqueue it again with [WithID] then. A job whose id is in
// the table already, or was lately, is not enqueued a second time, which is no
// error. The line is in the order of the producers' clocks, and exact within one
// process. A [Queue.Run] of this process learns of the job at once.
// ErrTooLarge if the value does not fit an item. One request: a transaction of
// two rows, four write units and more for jobs over 1 KB; and one of one unit at most
// every 15 s for each of 16 shards of resources, by which dispatchers of other processes
// hear of it. Calls in one process for one resource follow each other.
func (q *Queue[J]) Enqueue(ctx context.Context, resource string, job J, options ...Option) (id string, err error) {
	return q.enqueue(ctx, resource, job, options)
}

func (s *store) enqueue(ctx context.Context, resource string, job any, given []Option) (id string, err error) {
	e, err := optionsOf(given)
	if err != nil {
		return "", err
	}
	if err := nesting.Effect(ctx, "jobs.Enqueue", "In(tx)"); err != nil {
		return "", err
	}
	ctx, span := s.table.Core.Observe.Call(ctx, telemetry.Job, "Enqueue")
	span.Key(func() string { return resource })
	defer span.End(&err)
	row, id, err := s.newRow(resource, job, e)
	if err != nil {
		return id, err
	}
	if err := s.put(ctx, resource, id, row); err != nil {
		return id, err
	}
	s.wake(resource)
	s.mark(ctx, resource)
	return id, nil
}

// newRow makes the row of a job, at its place in line.
func (s *store) newRow(resource string, job any, e options) (row ddb.Item, id string, err error) {
	id = s.nextPlace()
	place := id
	at, again := madeAt(e.id)
	switch {
	case again:
		if id, place = e.id, e.id; s.table.Clock().Sub(at) > repeatable {
			return nil, id, resources.Unknown(resource, fmt.Errorf("the id %s was made more than %v ago", id, repeatable))
		}
	case e.given:
		id = e.id
	}
	if _, err := s.jobKey(jobsPrefix, resource, id); err != nil {
		return nil, "", err
	}
	value, err := json.Marshal(job)
	if err != nil {
		return nil, "", fmt.Errorf("%w: a job of type %T cannot be written as JSON: %w", repo.ErrSchema, job, redact.Error(err))
	}
	j := jobRow{id: id, row: ddb.Item{aJob: ddb.Text(string(value))}}
	if e.given && !again {
		j.row[aMarked] = ddb.True()
	}
	row = j.waiting(resource, place)
	// What a failed and started job has beside its value must fit too.
	later := ddb.Diff{Set: []ddb.Attribute{{Name: aError, Value: ddb.Text(strings.Repeat("x", maxError+maxOwner))}}}
	if err := protocol.Of(s.table.Core).CheckSize(row, later); err != nil {
		return nil, "", fmt.Errorf("job for %q: %w", resource, err)
	}
	return row, id, nil
}

// put sends the transaction of an Enqueue. Calls with the same id are one for
// the service, as long as it remembers them.
func (s *store) put(ctx context.Context, resource, id string, row ddb.Item) error {
	j := &insertion{s: s, resource: resource, row: row}
	actions := []rows.Action{j, &counters{s: s, resource: resource, inserts: []*insertion{j}}}
	opt := ddb.Options{Holding: true}
	if row[aMarked] != nil {
		actions = append(actions, idRow{s, resources.RowKey(idsPrefix+resource, id), j})
	} else {
		hash := sha256.Sum256([]byte(s.table.Core.Name + "\x00" + resource + "\x00" + id))
		opt.Token = base32.StdEncoding.EncodeToString(hash[:20])
	}
	writes, err := s.writes(actions...)
	if err != nil {
		return err
	}
	// All meet on the row of the resource, where DynamoDB would refuse all but one.
	defer queueUp(ctx, &s.localResource(resource).coming)()
	opt.Sending = ddb.NewSending(opt.Token)
	res, backoff := s.table.Core.Transact(ctx, s.client, opt, writes...), s.table.Backoff()
	for res.Outcome == ddb.Refused && ddb.Conflicted(res.Err) && ctx.Err() == nil {
		ddb.Sleep(ctx, backoff.Next(time.Now(), time.Time{}))
		res = s.table.Core.Transact(ctx, s.client, opt, writes...)
	}
	return s.judgePut(ctx, resource, id, res)
}

// judgePut says what the last answer means: a conflict may be that with a copy of it.
func (s *store) judgePut(ctx context.Context, resource, id string, res ddb.Result) error {
	var other *types.IdempotentParameterMismatchException
	switch {
	case res.Outcome == ddb.Condition:
		return nil // the id is in the table: by an earlier attempt, or an earlier call
	case res.Outcome == ddb.Refused && ddb.Conflicted(res.Err):
		return resources.Unknown(resource, res.Err)
	case errors.As(res.Err, &other):
		return resources.Unknown(resource, fmt.Errorf("the id %s was enqueued with another value, or by a program with another Limit: %w", id, res.Err))
	case res.Outcome == ddb.Refused:
		res.Err = s.explain(ctx, res.Err)
	}
	return resources.Plain(resource, res)
}

// writes are those of some rows, as in a transaction.
func (s *store) writes(actions ...rows.Action) (writes []types.TransactWriteItem, err error) {
	for _, a := range actions {
		part, some, err := a.Write(s.table.Core.NewWrite())
		if err != nil {
			return nil, err
		}
		if some {
			writes = append(writes, part)
		}
	}
	return writes, nil
}

// idRow makes the row of an id that a caller gave. It demands that there is none,
// or one whose time is over and that the table's TTL has not removed yet.
func (s *store) idRow(key ddb.Item) types.TransactWriteItem {
	put := s.table.Core.PutOf(key)
	cond := "attribute_not_exists(#pk) OR #ttl < :now"
	put.Put.ConditionExpression = &cond
	put.Put.ExpressionAttributeNames["#ttl"] = s.table.Core.Attr.TTL
	put.Put.ExpressionAttributeValues = ddb.Item{":now": ddb.Integer(s.table.Clock().Unix())}
	return put
}

// unmark lets the id of a job be forgotten some time after its end.
func (s *store) unmark(c *change, resource string, j jobRow) {
	if j.marked() {
		id, _, _ := idRow{s, resources.RowKey(idsPrefix+resource, j.id), nil}.Write(s.table.Core.NewWrite())
		c.writes = append(c.writes, id)
	}
}

// forget gives the row of an id its end.
func (s *store) forget(w *ddb.Write) *ddb.Write {
	w.Set(s.table.Core.Attr.TTL, ddb.Integer(s.table.Clock().Add(rememberIDs).Unix()))
	return w
}

// maxOwner is the most that a job's owner, its times and its token take, in
// bytes.
const maxOwner = 512

// jobKey is the key of a job in line, or of a dead letter. It refuses names that are too
// long for it, and ids that cannot be keys.
func (s *store) jobKey(prefix, resource, id string) (ddb.Item, error) {
	if err := s.table.CheckName(resource); err != nil {
		return nil, err
	}
	return s.table.Keys.EncodeKey(repo.Key{Partition: prefix + resource, Sort: id})
}
