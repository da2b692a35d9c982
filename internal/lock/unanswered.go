package lock

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
)

// unansweredTries are tries to take a lock that had no answer, by id: when they were
// sent. The lock of one that landed is ours; it is given back by its id if its
// caller goes away without one.
type unansweredTries map[string]time.Time

// maxLost bounds how many tries are remembered; the newest are.
const maxLost = 100

// maxFlight is how long a request may be under way and be carried out yet:
// DynamoDB refuses one whose signature is more than five minutes old, and clocks
// that are as wrong as it allows.
const maxFlight = 15 * time.Minute

// and adds a try, and forgets what cannot matter any more: those that were sent
// longer ago than landing.
func (l unansweredTries) and(id string, sent time.Time, landing time.Duration) unansweredTries {
	if l == nil {
		l = unansweredTries{}
	}
	l[id] = sent
	maps.DeleteFunc(l, func(_ string, at time.Time) bool { return sent.Sub(at) > landing })
	for len(l) > maxLost {
		delete(l, l.newest()[len(l)-1])
	}
	return l
}

// newest are the ids, the latest try first.
func (l unansweredTries) newest() []string {
	return slices.SortedFunc(maps.Keys(l), func(a, b string) int { return l[b].Compare(l[a]) })
}

// landing is how long after it was sent a try can still take a lock that would
// be in anybody's way. Whoever trusts clocks takes over what has lain beyond its
// lease when it lands; a watcher cannot know, and a hold without an end has none.
func (c *Config) landing() time.Duration {
	if c.Lease == 0 || c.Clockless {
		return maxFlight
	}
	return c.Lease + c.Skew
}

// late reports whether it is too late for the holder of a lock that others may
// take over at end; until is the end that the holder has written.
func (t *Locker) late(end, until time.Time) bool {
	margin := lease.Margin(t.Lease)
	return t.Lease > 0 && (!time.Now().Before(end.Add(-margin)) || t.Core.Jumps && !t.Clock().Before(until.Add(-margin)))
}

// releaseUnanswered frees a lock that may have been taken by a try without an answer:
// whoever asked for it is told that it was not. A lock has one holder, so a
// release that is refused tells whether one of the others took it. It reports whether the
// lock is not held by any of them.
func (a *acquiring) releaseUnanswered(ctx context.Context) (freed bool) {
	if len(a.mayHold) == 0 {
		return true
	}
	ctx = a.cleaning(ctx)
	for id := a.mayHold.newest()[0]; id != ""; {
		delete(a.mayHold, id)
		var holder string
		holder, freed = a.locker.releaseUnused(ctx, a.Raw, id, a.Stub)
		if _, ours := a.mayHold[holder]; !ours {
			return freed
		}
		id = holder
	}
	return freed
}

// unlessFreed is the error of a call that has no lock. One that nobody may take over is in
// everybody's way if a try has taken it and it was not given back: its caller is told.
func (a *acquiring) unlessFreed(freed bool, err error) error {
	if freed || a.locker.Lease > 0 {
		return err
	}
	return UnknownOutcome(a.Core.Table, a.Key, err)
}

// notTaken reports whether an item shows nothing of the present request.
func (a *acquiring) notTaken(item ddb.Item) bool {
	return !ddb.Equal(item[a.Core.Attr.LockedBy], ddb.Text(a.id))
}

// notEntered is notTaken of an enqueue.
func (q *queued) notEntered(item ddb.Item) bool {
	_, _, there := q.Core.ParseQueue(item).Find(q.entry)
	return !there && q.notTaken(item)
}

// releaseTaken frees the lock that the present try has taken.
func (a *acquiring) releaseTaken(ctx context.Context) {
	ctx, cancel := ddb.DetachedTimeout(ctx)
	defer cancel()
	a.locker.releaseUnused(ctx, a.Raw, a.id, a.Stub)
}
