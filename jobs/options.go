package jobs

import (
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Option changes how one job is enqueued.
type Option func(*options)

// options is what options say of a job.
type options struct {
	id    string
	given bool
	ids   []string      // of many jobs
	lot   string        // "": the job is alone
	nth   time.Duration // how far behind the first of many

	at    time.Time     // zero: at once, or after
	after time.Duration // of the queue's clock

	level   int // 0: the default
	most    int
	timeout time.Duration
	keep    time.Duration
	keeps   bool // keep was given
	unique  string
	claims  bool // unique was given
	err     error
}

func optionsOf(given []Option) (e options, err error) {
	for i, o := range given {
		if o == nil {
			return e, fmt.Errorf("%w: option %d of the job is nil", repo.ErrConfig, i+1)
		}
		o(&e)
	}
	return e, e.err
}

// optionsOfOne are those of a job that is enqueued alone.
func optionsOfOne(given []Option) (options, error) {
	e, err := optionsOf(given)
	if err == nil && len(e.ids) > 0 {
		err = fmt.Errorf("%w: WithIDs is for EnqueueMany: give one job its id by WithID", repo.ErrConfig)
	}
	return e, err
}

// refuse notes the first option that makes no sense.
func (e *options) refuse(text string, values ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%w: "+text, append([]any{repo.ErrConfig}, values...)...)
	}
}

// WithID gives a job its id, so that enqueueing it again, after
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
// request. After that Enqueue returns ErrOutcomeUnknown and sends nothing; where calls are
// traced it may return that, too, if another process repeats the id of a job that is done
// already. The time of a job is in such an id, and goes before At and After.
func WithID(id string) Option {
	return func(e *options) { e.id, e.ids, e.given = id, nil, true }
}

// WithIDs is for [Queue.EnqueueMany]: ids that it has returned, one for each of the jobs, "" of
// those that are new. Jobs that it enqueued together are so again, or not at all: those of
// [ManyError].Unknown. Else it is [WithID] with ids that were made.
func WithIDs(ids []string) Option {
	return func(e *options) { e.id, e.ids, e.given = "", ids, len(ids) > 0 }
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

// The levels of Priority.
const (
	firstLevel, defaultLevel, lastLevel = 1, 2, 4
)

// Priority is the level of a job: 1 comes first, 2 is the default, 4 comes last. Of a
// resource jobs of a lower number are started first, of one number those that wait
// longest. So that none waits for ever, of every eight jobs of a resource that a process
// starts one is the oldest of another level, 4, 3 and 2 in turn: as long as jobs are
// started, every 24th is one of any of them. Where a resource has ever had such
// jobs, a start in eight costs up to three queries more. A program
// without priorities starts such jobs in the same order, without that share.
func Priority(p int) Option {
	return func(e *options) {
		if e.level = p; p < firstLevel || p > lastLevel {
			e.refuse("a job cannot have the priority %d: use %d to %d", p, firstLevel, lastLevel)
		}
	}
}

// Attempts is how often the job is started at most, before it goes to the dead letters. Default: as
// Config.Retry of the program that runs it says.
func Attempts(n int) Option {
	return func(e *options) {
		if e.most = n; n < 1 || n > resources.MaxCount {
			e.refuse("a job cannot have %d attempts", n)
		}
	}
}

// Timeout is how long a handler of Run may work on the job, instead of
// Config.HandlerTimeout of the program that runs it. At least 1 ms.
func Timeout(d time.Duration) Option {
	return func(e *options) {
		if e.timeout = d; d < time.Millisecond {
			e.refuse("a handler cannot have %v for a job", d)
		}
	}
}

// Unique lets one job of a resource wait or run under a key at a time. Another is refused
// with *[ExistsError], which is ErrExists and has the id of the first; so has what Enqueue
// returns. It ends with the job, also where that becomes a dead letter: one that is queued
// again is not unique any more. Two write units more when it is enqueued, and two when it
// ends. Where one is refused, two reads see whether the other is really there: an older
// program may have ended it and left the key, which is then taken over (not in a
// transaction, which is refused). A [View] refuses the whole transaction.
func Unique(key string) Option {
	return func(e *options) {
		if e.unique, e.claims = key, true; key == "" {
			e.refuse("the key of a unique job is empty")
		}
	}
}

// Keep is how long it is kept what became of the job, for [Queue.Status]: that it was done,
// with what SetResult has left, or was cancelled or discarded, with the error of the last
// attempt that failed. Dead letters are kept anyhow, until they are requeued or discarded.
// The table's TTL removes it later. An id of the caller's own is remembered as long, at
// least. Two write units more when the job ends, of up to 1 KB of result. Default:
// Config.Keep of the program that enqueues it; in whole seconds, 0: it is not kept. A
// program of a version without Keep ends such a job without a trace.
func Keep(d time.Duration) Option {
	return func(e *options) {
		if e.keep, e.keeps = d, true; d < 0 || d > 0 && d < time.Millisecond {
			e.refuse("what became of a job cannot be kept for %v", d)
		}
	}
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
	return due.Add(e.nth), nil
}
