package jobs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// nextPlace makes an id of a lot that sorts by time, and within one process by order.
func (s *store) nextPlace(lot string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.table.Clock().UnixMicro()
	if s.last = max(s.last+1, now); s.last > now+time.Minute.Microseconds() {
		s.last = now // the clock was set back
	}
	return placeIn(time.UnixMicro(s.last), lot)
}

// placeAt is a place in line at a time in microseconds.
func placeAt(micros int64) string { return placeIn(time.UnixMicro(micros), newLot()) }

// newLot tells the ids of jobs that are enqueued in one transaction from all others. It is
// what their token is made of: so whoever repeats another part of them than was sent repeats
// nothing, and is told that he does not know.
func newLot() string { return rand.Text()[:13] }

// lotIn is the lot of an id that this package made.
func lotIn(id string) string { return id[16 : 16+13] }

// made are the ids that this package makes: the places at which jobs are enqueued, and behind
// that the time and the level of a job that has one.
var made = regexp.MustCompile(`^[0-9a-f]{15}-[A-Z2-7]{13}(-[0-9a-f]{15})?(-[134])?$`)

// madeAt is when an id was made that this package makes.
func madeAt(id string) (at time.Time, ok bool) {
	if !made.MatchString(id) {
		return at, false
	}
	return timeIn(id[:15]), true
}

// timeIn reads a time that a place or an id has.
func timeIn(digits string) time.Time {
	micros, _ := strconv.ParseInt(digits, 16, 64) // 15 digits fit
	return time.UnixMicro(micros)
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
	return q.s.enqueue(ctx, resource, job, options)
}

func (s *store) enqueue(ctx context.Context, resource string, job any, given []Option) (id string, err error) {
	e, err := optionsOfOne(given)
	if err != nil {
		return "", err
	}
	if err := nesting.Effect(ctx, "jobs.Enqueue", "In(tx)"); err != nil {
		return "", err
	}
	ctx, span := s.table.Core.Observe.Call(ctx, telemetry.Job, "Enqueue", func() string { return resource })
	defer span.End(&err)
	n, err := s.newJobRow(ctx, resource, job, e)
	if err != nil {
		return n.id, err
	}
	err = s.put(ctx, []*insertion{n})
	if mayBeThere(err) {
		n.tell(ctx)
	}
	if other := (*ExistsError)(nil); errors.As(err, &other) {
		return other.ID, err
	}
	return n.id, err
}

// mayBeThere reports whether a job may be in the table, as the error of its Enqueue says.
func mayBeThere(err error) bool { return err == nil || errors.Is(err, repo.ErrOutcomeUnknown) }

// put sends the transaction of an Enqueue, of one job or of a lot. Calls with the same id are one for
// the service, as long as it remembers them: so what it sends is the same, too, where the key
// of a job that is to be unique was left by one that is gone.
func (s *store) put(ctx context.Context, some []*insertion) error {
	j, token := some[0], ""
	var actions []rows.Action
	for _, n := range some {
		actions = append(actions, n)
	}
	actions = append(actions, &counters{s: s, resource: j.resource, inserts: some})
	if j.marked() {
		actions = append(actions, j.mark())
	} else {
		token = tokenOf(s.table.Core.Name, j.resource, lotIn(j.id))
	}
	last := len(actions)
	if j.unique() != "" {
		actions = append(actions, claim{n: j})
	}
	for sending := j.sending(token); ; {
		res, err := s.putAll(ctx, j, sending, actions...)
		switch {
		case err != nil:
			return err
		case res.Outcome != ddb.Condition, len(res.Images) <= last, // it was looked for, and is there
			slices.ContainsFunc(res.Images[:last], func(i ddb.Image) bool { return i.Failed }):
			return s.judgePut(ctx, some, res)
		}
		left, err := j.exists(ctx, res.Images[last].Item)
		if left == "" {
			return err
		}
		if res := j.clear(ctx, left); res.Err != nil && !ddb.Conflicted(res.Err) {
			return resources.Plain(j.resource, res)
		}
	}
}

// sending is the request of a job's Enqueue under a token, which the service forgets some time
// after it was first sent.
func (n *insertion) sending(token string) *ddb.Sending {
	made, _ := madeAt(n.id)
	return ddb.NewSending(token, n.s.table.Clock().Sub(made))
}

// tokenOf is the token of a request that says the same whenever it is sent.
func tokenOf(parts ...string) string {
	hash := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base32.StdEncoding.EncodeToString(hash[:20])
}

// putAll sends a transaction of an Enqueue, of which j is a job.
func (s *store) putAll(ctx context.Context, j *insertion, sending *ddb.Sending, actions ...rows.Action) (res ddb.Result, err error) {
	writes, err := s.writes(actions...)
	if err != nil {
		return res, err
	}
	// All meet on the row of the resource, where DynamoDB would refuse all but one.
	defer queueUp(ctx, &s.localResource(j.resource).coming)()
	opt := ddb.Options{Holding: true, Sending: sending}
	res = s.table.Core.Transact(ctx, s.client, opt, writes...)
	backoff := s.table.Backoff()
	for res.Outcome == ddb.Refused && ddb.Conflicted(res.Err) && ctx.Err() == nil {
		ddb.Sleep(ctx, backoff.Next(time.Now(), time.Time{}))
		res = s.table.Core.Transact(ctx, s.client, opt, writes...)
	}
	return s.lookedFor(ctx, j, res), nil
}

// lookedFor looks for a job whose Enqueue was given up unjudged. The row of an id that a
// caller gave outlives the job; without one nobody knows where the job's row is gone: it may
// have been done meanwhile.
func (s *store) lookedFor(ctx context.Context, j *insertion, res ddb.Result) ddb.Result {
	key, marked := s.table.Core.Key(j.row), j.marked()
	if marked {
		key = resources.RowKey(idsPrefix+j.resource, j.id)
	}
	unjudged := res.Outcome == ddb.Refused && res.Unjudged
	res = s.table.Core.Looked(ctx, key, func(found ddb.Item) bool {
		end, err := ddb.Time(found[s.table.Core.Attr.TTL])
		return len(found) == 0 || err == nil && end.Before(s.table.Clock()) // its time is over
	}, res)
	if unjudged && !marked && res.Outcome == ddb.Refused {
		res.Outcome = ddb.Unknown
	}
	return res
}

// judgePut says what the last answer means: a conflict may be that with a copy of it.
func (s *store) judgePut(ctx context.Context, some []*insertion, res ddb.Result) error {
	resource, id := some[0].resource, some[0].id
	var other *types.IdempotentParameterMismatchException
	switch {
	case res.Outcome == ddb.Condition && len(some) == 1:
		return nil // the id is in the table: by an earlier attempt, or an earlier call
	case res.Outcome == ddb.Refused && ddb.Conflicted(res.Err):
		return resources.Unknown(resource, res.Err)
	case (res.Outcome == ddb.Condition || errors.As(res.Err, &other)) && s.areThere(ctx, some):
		return nil
	case errors.As(res.Err, &other):
		return resources.Unknown(resource, fmt.Errorf("the id %s was enqueued with another value, with other jobs, or by a program with another Limit: %w", id, res.Err))
	case res.Outcome == ddb.Refused:
		res.Err = s.explain(ctx, res.Err)
	}
	return resources.Plain(resource, res)
}

// areThere reports whether some jobs are in the table with the same values. So they are where
// their ids were enqueued by a call with another trace, or a program with another Limit. Who
// has left is told, too.
func (s *store) areThere(ctx context.Context, some []*insertion) bool {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	return !slices.ContainsFunc(some, func(j *insertion) bool {
		row, err := s.table.Core.Get(ctx, s.table.Core.Key(j.row))
		return err != nil || len(row) == 0 || !ddb.Equal(row[aJob], j.row[aJob])
	})
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
func (s *store) idRow(row ddb.Item) types.TransactWriteItem {
	put := s.table.Core.PutOf(row)
	cond := "attribute_not_exists(#pk) OR #ttl < :now"
	put.Put.ConditionExpression = &cond
	put.Put.ExpressionAttributeNames["#ttl"] = s.table.Core.Attr.TTL
	put.Put.ExpressionAttributeValues = ddb.Item{":now": ddb.Integer(s.table.Clock().Unix())}
	return put
}

// unmark lets the id of a job be forgotten some time after its end.
func (s *store) unmark(c *change, resource string, j jobRow) {
	if j.marked() {
		id, _, _ := idRow{s: s, row: resources.RowKey(idsPrefix+resource, j.id), keep: j.keep}.Write(s.table.Core.NewWrite())
		c.writes = append(c.writes, id)
	}
}

// gone adds to the end of a job what else ends with it.
func (s *store) gone(c *change, resource string, j jobRow) {
	s.unmark(c, resource, j)
	s.free(c, resource, j)
}

// forget gives the row of an id its end, not before what is kept of its job.
func (s *store) forget(w *ddb.Write, keep time.Duration) *ddb.Write {
	w.Set(s.table.Core.Attr.TTL, ddb.Integer(s.table.Clock().Add(max(rememberIDs, keep)).Unix()))
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
	if id == "" {
		return nil, fmt.Errorf("%w: the id of the job is empty", repo.ErrKey)
	}
	return s.table.Keys.EncodeKey(repo.Key{Partition: prefix + resource, Sort: id})
}
