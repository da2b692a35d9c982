package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// insertion is the row of a job that is enqueued, in a transaction of items or alone.
type insertion struct {
	s        *store
	resource string
	id       string
	row      ddb.Item
	due      time.Time // zero: it is in line
	known    bool      // its id is in the table already: nothing is to be done
}

// newJobRow makes the row of a job, at its place in line, or in the rows of those that
// wait for their time. With an error it has the id, if there is one.
func (s *store) newJobRow(ctx context.Context, resource string, job any, e options) (n *insertion, err error) {
	n = &insertion{s: s, resource: resource}
	place, err := n.identify(e)
	if err != nil {
		return n, err
	}
	if _, err := s.jobKey(jobsPrefix, resource, n.id); err != nil {
		n.id = ""
		return n, err
	}
	if e.claims {
		if _, err := s.jobKey(uniquePrefix, resource, e.unique); err != nil {
			n.id = ""
			return n, fmt.Errorf("the key of a unique job: %w", err)
		}
	}
	value, err := json.Marshal(job)
	if err != nil {
		n.id = ""
		return n, fmt.Errorf("%w: a job of type %T cannot be written as JSON: %w", repo.ErrSchema, job, redact.Error(err))
	}
	j := jobRow{id: n.id, row: ddb.Item{aJob: ddb.Text(string(value))}}
	if !e.keeps {
		e.keep = s.cfg.Keep
	}
	j.setOptions(e)
	if from := n.origin(ctx, e); from != "" {
		j.row[aTrace] = ddb.Text(from)
	}
	if n.row = j.waiting(resource, place); !n.due.IsZero() {
		n.row = j.later(resource, place)
	}
	// What a failed and started job has beside its value must fit too.
	later := ddb.Diff{Set: []ddb.Attribute{{Name: aError, Value: ddb.Text(strings.Repeat("x", maxError+maxOwner))}}}
	if err := protocol.Of(s.table.Core).CheckSize(n.row, later); err != nil {
		n.id = ""
		return n, fmt.Errorf("job for %q: %w", resource, err)
	}
	return n, nil
}

// maxOrigins is of how many jobs that it has enqueued last a process knows where they come
// from.
const maxOrigins = 4096

// origin is where the job comes from. A repetition says what the first call said, as long
// as this process remembers it: for the service both must be one request.
func (n *insertion) origin(ctx context.Context, e options) (from string) {
	if _, again := madeAt(e.id); again {
		return n.s.origins.Get(n.id)
	}
	if from = n.s.table.Core.Observe.Carry(ctx); from != "" && !e.given {
		n.s.origins.Change(n.id, func(string) (string, bool) { return from, true })
	}
	return from
}

// setOptions writes what options say into the row of a job.
func (j jobRow) setOptions(e options) {
	level := int64(e.level)
	if _, again := madeAt(e.id); again {
		level = int64(levelIn(e.id))
	} else if e.given {
		j.row[aMarked] = ddb.True()
	}
	if level != 0 && level != defaultLevel {
		j.row[aLevel] = ddb.Integer(level)
	}
	if e.most > 0 {
		j.row[aMost] = ddb.Integer(int64(e.most))
	}
	if e.timeout > 0 {
		j.row[aTimeout] = ddb.Integer(e.timeout.Milliseconds())
	}
	if e.keep > 0 {
		j.row[aKeep] = ddb.Integer(int64(min(e.keep, math.MaxInt64-time.Second)+time.Second-1) / int64(time.Second))
	}
	if e.claims {
		j.row[aUnique] = ddb.Text(e.unique)
	}
}

// identify gives the job its id, its time and its place.
func (n *insertion) identify(e options) (place string, err error) {
	now := n.s.table.Clock()
	at, again := madeAt(e.id)
	if again {
		n.id = e.id
		if place, n.due = placeOf(e.id); now.Sub(at) > repeatable {
			return "", resources.Unknown(n.resource, fmt.Errorf("the id %s was made more than %v ago", e.id, repeatable))
		}
		return place, nil
	}
	if n.due, err = e.time(now); err != nil {
		return "", err
	}
	place = n.s.nextPlace(cmp.Or(e.lot, newLot()))
	n.id = place
	if !n.due.IsZero() {
		n.id = timedID(place, n.due)
		place, _ = placeOf(n.id)
	}
	n.id = withLevel(n.id, e.level)
	if e.given {
		n.id = e.id
	}
	return place, nil
}

// marked says that the id has a row of its own.
func (n *insertion) marked() bool { return n.row[aMarked] != nil }

// mark is the row of the id. Of a job with a time it says where that is.
func (n *insertion) mark() idRow {
	row := resources.RowKey(idsPrefix+n.resource, n.id)
	if !n.due.IsZero() {
		row[aAt] = n.row[resources.SK]
		if level := n.row[aLevel]; level != nil {
			row[aLevel] = level
		}
	}
	return idRow{s: n.s, row: row, job: n}
}

// count adds what the job does to the counters of its resource.
func (n *insertion) count(c *resources.Counts) {
	c.Levels = c.Levels || n.row[aLevel] != nil
	if c.Registers = true; n.due.IsZero() {
		c.Queued++
	} else {
		c.Later++
	}
}

// tell tells dispatchers of a job that is in the table, or may be: those of this process
// and of others, also where its caller has gone.
func (n *insertion) tell(ctx context.Context) {
	ctx, cancel := ddb.DetachedTimeout(ctx)
	defer cancel()
	n.tellHere()
	if n.due.IsZero() {
		n.s.mark(ctx, n.resource)
	} else {
		n.s.markDue(ctx, n.resource, n.due)
	}
}

// tellHere is tell for one of several that were enqueued together, behind the first.
func (n *insertion) tellHere() {
	if n.due.IsZero() {
		n.s.wake(n.resource)
	} else {
		n.s.noteDue(n.resource, n.due)
	}
}

// Write demands that the row is new.
func (n *insertion) Write(*ddb.Write) (types.TransactWriteItem, bool, error) {
	return n.s.table.Core.PutOf(n.row), !n.known, nil
}

// Judge believes the row: the place in line was made for this transaction. A job whose
// time has come meanwhile has left its row.
func (n *insertion) Judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict {
	if len(image) > 0 {
		return protocol.Committed
	}
	return rows.Traceless{}.Judge(ctx, image, clean)
}

// Refused is not to be blamed: a row that is there is the transaction's own.
func (n *insertion) Refused(ddb.Item) error { return nil }

// Applied tells the dispatchers of this process, and wakes those of others.
func (n *insertion) Applied() { n.tell(context.Background()) }
