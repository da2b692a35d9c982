package jobs

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// jobRow is what the row of a job says.
type jobRow struct {
	row       ddb.Item
	place     string // its sort key
	id        string
	state     string
	attempts  int
	token     int64 // of the start, while it runs
	until     time.Time
	notBefore time.Time
	died      time.Time // of a dead letter
	owner     string
	failure   string
	resource  string // of a job that waits for its time
	most      int    // how often it is started at most; 0: as the program says
	timeout   time.Duration
	keep      time.Duration // how long it is kept what became of it
	size      int           // in bytes, about
}

// parseJob reads a job's row. What can be read is in the result also if
// something cannot.
func parseJob(row ddb.Item) (jobRow, error) {
	j := jobRow{row: row, place: resources.Text(row, resources.SK), id: resources.Text(row, aID), state: resources.Text(row, aState), owner: resources.Text(row, aOwner), failure: resources.Text(row, aError)}
	j.size = len(resources.Text(row, aJob)) + maxOwner + maxError
	attempts, err := resources.Integer(row, aAttempts, resources.MaxCount)
	j.attempts = int(attempts)
	if err == nil {
		err = j.readOptions()
	}
	if err == nil {
		j.token, err = resources.Integer(row, aToken, resources.MaxToken)
	}
	for _, m := range []struct {
		name string
		to   *time.Time
	}{{aUntil, &j.until}, {aNotBefore, &j.notBefore}, {aDied, &j.died}} {
		if v := row[m.name]; v != nil && err == nil {
			*m.to, err = ddb.Time(v)
		}
	}
	if err == nil && j.id == "" {
		err = fmt.Errorf("attribute %q is missing", aID)
	}
	if err == nil && j.state == running && row[aUntil] == nil {
		err = fmt.Errorf("attribute %q is missing, and it runs", aUntil)
	}
	if err != nil {
		return j, fmt.Errorf("%w: job %q: %w", repo.ErrSchema, j.place, err)
	}
	return j, nil
}

// readOptions reads what the producer of a job has asked for.
func (j *jobRow) readOptions() error {
	most, err := resources.Integer(j.row, aMost, resources.MaxCount)
	if err != nil {
		return err
	}
	millis, err := resources.Integer(j.row, aTimeout, int64(math.MaxInt64/time.Millisecond))
	if err != nil {
		return err
	}
	seconds, err := resources.Integer(j.row, aKeep, int64(math.MaxInt64/time.Second))
	j.most, j.timeout, j.keep = int(most), time.Duration(millis)*time.Millisecond, time.Duration(seconds)*time.Second
	return err
}

// spent reports whether the attempt that was begun last is the last one.
func (s *store) spent(j jobRow) bool { return j.attempts >= cmp.Or(j.most, s.cfg.Retry.Attempts) }

// enqueued is when a job was enqueued, as far as its row tells: an id that Enqueue made
// begins with that, and so does the place in line of a job that has never failed; beside the
// line that is its time.
func (j jobRow) enqueued() (at time.Time) {
	at, made := madeAt(j.id)
	if failed := j.attempts > 1 || j.attempts == 1 && j.state != running; !made && !failed && !j.isLater() {
		at, _ = madeAt(withoutLevel(j.place))
	}
	return at
}

// key is the primary key of the row.
func (j jobRow) key() ddb.Item {
	return ddb.Item{resources.PK: j.row[resources.PK], resources.SK: j.row[resources.SK]}
}

// at is the job in another row, with what goes with it everywhere.
func (j jobRow) at(pk, sk string) ddb.Item {
	row := resources.RowKey(pk, sk)
	row[aID], row[aAttempts] = ddb.Text(j.id), ddb.Integer(int64(j.attempts))
	for _, kept := range []string{aJob, aMarked, aLevel, aMost, aTimeout, aUnique, aKeep, aTrace} {
		if v := j.row[kept]; v != nil {
			row[kept] = v
		}
	}
	return row
}

// waiting is the job in a row at a place in line.
func (j jobRow) waiting(resource, place string) ddb.Item {
	row := j.at(jobsPrefix+resource, inLine(j.level(), place))
	row[aState] = ddb.Text(queued)
	return row
}

// asRead demands that a job is as it was read.
func (j jobRow) asRead(w *ddb.Write) {
	w.IfSeen(j.row, aState, aAttempts, aToken, aUntil)
	w.IfExists(resources.PK)
}

// marked says that the id of a job has a row of its own.
func (j jobRow) marked() bool { return j.row[aMarked] != nil }
