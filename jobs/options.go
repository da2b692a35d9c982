package jobs

import (
	"fmt"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// Option changes how one job is enqueued.
type Option func(*options)

// options is what options say of a job.
type options struct {
	id    string
	given bool

	at    time.Time     // zero: at once, or after
	after time.Duration // of the queue's clock
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
// request. After that Enqueue returns ErrOutcomeUnknown and sends nothing. The time of
// a job is in such an id, and goes before At and After.
func WithID(id string) Option {
	return func(e *options) { e.id, e.given = id, true }
}

// At lets a job start at a time, by the clocks of those who start it, or with their next
// look after it ([Config].Poll). A time that has come is no time. Until then the job
// lies in a row that no look for other work reads, and that programs without At do not
// know. Then whoever sees it first puts it in the resource's line, as if it had been
// enqueued at its time: a transaction of three rows, six write units, fewer where several
// are due.
func At(t time.Time) Option { return func(e *options) { e.at, e.after = t, 0 } }

// After is At a time from now, by the clock of the queue.
func After(d time.Duration) Option {
	return func(e *options) { e.at, e.after = time.Time{}, d }
}

// latest is the last time that a job may have: a place in line has digits for no more.
var latest = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

// time is when the job may start; zero: at once.
func (e options) time(now time.Time) (due time.Time, err error) {
	due = e.at
	if due.IsZero() {
		due = now.Add(e.after)
	}
	switch {
	case !due.Before(latest):
		return due, fmt.Errorf("%w: a job cannot start at %v", repo.ErrConfig, due)
	case !due.After(now):
		return time.Time{}, nil
	}
	return due, nil
}
