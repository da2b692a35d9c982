package semaphore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// ids makes ids that sort by time, and within one process by order.
type ids struct {
	mu   sync.Mutex
	last int64 // guarded by mu: microseconds
}

func (i *ids) next(now time.Time) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = max(i.last+1, now.UnixMicro())
	return placeAt(i.last)
}

// placeAt is a place in line at a time in microseconds.
func placeAt(micros int64) string { return fmt.Sprintf("%015x-%s", micros, rand.Text()[:13]) }

// Enqueue puts a job at the end of a resource's line, and registers a resource
// that nobody has used. The line is in the order of the producers' clocks, and
// exact within one process. ErrTooLarge if the value does not fit an item. One
// request: a transaction of two rows, four write units and more for jobs over
// 1 KB.
func (s *Semaphore[J]) Enqueue(ctx context.Context, resource string, job J) error {
	if err := s.checkName(resource); err != nil {
		return err
	}
	if err := s.checkJobs(resource); err != nil {
		return err
	}
	value, err := json.Marshal(job)
	if err != nil {
		return fmt.Errorf("%w: a job of type %T cannot be written as JSON: %w", repo.ErrSchema, job, err)
	}
	for {
		id := s.ids.next(s.clock())
		row := rowKey(jobsPrefix+resource, id)
		row[aID], row[aJob], row[aState], row[aAttempts] = ddb.Text(id), ddb.Text(string(value)), ddb.Text(queued), ddb.Integer(0)
		// What a failed and started job has beside its value must fit too.
		later := ddb.Diff{Set: []ddb.Attribute{{Name: aError, Value: ddb.Text(strings.Repeat("x", maxError+maxOwner))}}}
		if err := s.core.CheckSize(row, later); err != nil {
			return repo.Classify(fmt.Errorf("job for %q: %w", resource, err))
		}
		w := s.core.NewWrite()
		register(w, s.cfg)
		count(w, aQueued, 1)
		count(w, aRunning, 0)
		count(w, aChanges, 1)
		in, err := w.Update(resourceKey(resource))
		if err != nil {
			return repo.Classify(err)
		}
		res := s.transact(ctx, ddb.Options{}, s.core.PutOf(row), ddb.UpdateOf(in))
		switch {
		case res.Outcome != ddb.Condition:
			return s.plain(resource, res)
		case res.Images[1].Failed:
			r, err := parseResource(resource, res.Images[1].Item)
			if err == nil {
				err = r.check(s.cfg)
			}
			if err != nil {
				return err
			}
			return unknown(resource, nil) // the row is not what made it fail: it changed meanwhile
		case !res.Clean:
			return nil // the id is ours: an earlier attempt was applied
		}
	}
}

// maxOwner is the most that a job's owner, its times and its token take, in
// bytes.
const maxOwner = 512

// checkJobs refuses a name that is too long for the lines of its jobs.
func (s *Semaphore[J]) checkJobs(resource string) error {
	_, err := s.table.EncodeKey(repo.Key{Partition: jobsPrefix + resource, Sort: "x"})
	return err
}
