package ticket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ErrClosed says that the queue was closed; see [Queue.Close].
var ErrClosed = telemetry.NewError("closed", "queue is closed")

// Queue serves whoever asks in the order in which they asked. It is safe for
// concurrent use.
type Queue struct {
	table *repo.KeyTable
	core  *stored.Table
	cfg   Config
	clock func() time.Time

	lease lease.Config // of tickets
	open  *closing.Client[*Ticket]

	mu     sync.Mutex
	groups map[string]*group // guarded by mu: those of this process, by the queue's key
}

// New checks the settings and prepares the table's requests. It sends nothing
// and starts nothing. An error (ErrConfig) says how to mend it.
func New(client repo.Client, tableName string, cfg Config) (*Queue, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	table, err := repo.NewKeyTable(client, tableName, repo.KeySchema{Partition: repo.KeyAttribute{Name: attrKey}}, cfg.Table)
	if err != nil {
		return nil, err
	}
	cfg.Table.PageSecret = nil
	core := link.Table(table)
	if name := core.Attr.Clash([]string{attrKey, attrNext, attrCount, attrLeft}, []string{attrTicket, attrBeat, attrLease, attrOwner, attrBroken}); name != "" {
		return nil, fmt.Errorf("%w: Table.Attributes has the name %q, which a queue keeps for itself", repo.ErrConfig, name)
	}
	q := &Queue{table: table, core: core, cfg: cfg, clock: core.Clock, open: closing.New[*Ticket](ErrClosed), groups: map[string]*group{}}
	q.lease = lease.Config{Length: cfg.Lease, Every: cfg.Lease / 3, Pause: ddb.Backoff{Min: cfg.Wait.Min, Max: cfg.Wait.Max},
		Clock: func() time.Time { return q.clock() }, Jumps: core.Jumps, Observe: core.Observe, Sort: telemetry.Ticket}
	return q, nil
}

// Format prints the queue's table.
func (q *Queue) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "queues of %v", q.table) }

// EnsureTable creates the table if it does not exist (partition key "queue", a
// string; TTL on expiresAt), and verifies an existing one. See
// [repo.KeyTable.EnsureTable].
func (q *Queue) EnsureTable(ctx context.Context) error { return q.table.EnsureTable(ctx) }

// Lock joins the queue of an entity and waits for its turn, as long as ctx
// allows: one request if nobody is there, and one more when done. If it fails,
// nothing of it stays in the queue: one more request. When ctx ends first, the
// error is both ErrLocked, with *repo.LockedError, and the context's.
//
// While others of this process are before it, and nobody of another process was seen, it
// draws its ticket with the Done of one of them, or after 50 ms.
//
// Whoever was away for longer than its lease while it waited, because its
// process or the network stood still, takes up its place again if it is still
// there, and draws anew if others have passed it over: one more request.
//
// ctx governs the waiting, never the holding.
func (q *Queue) Lock(ctx context.Context, entity string) (*Turn, error) {
	return turnOf(q.call(ctx, "Lock", entity, q.lock))
}

// TryLock takes its turn if nobody is there, and fails with *repo.LockedError
// (ErrLocked) otherwise, without drawing a ticket. One request; two more if
// only stale entries are there. With Config.Clockless it never passes an entry
// over, which takes watching.
func (q *Queue) TryLock(ctx context.Context, entity string) (*Turn, error) {
	return turnOf(q.call(ctx, "TryLock", entity, func(ctx, grace context.Context, p place) (*Ticket, error) {
		return q.join(ctx, grace, p, true)
	}))
}

// Join stands in the queue of an entity and does not wait. The place is kept,
// and renewed in the background, until Leave or [Turn.Done]. One request.
//
// ctx governs the request, never the place.
func (q *Queue) Join(ctx context.Context, entity string) (*Ticket, error) {
	return q.call(ctx, "Join", entity, func(ctx, grace context.Context, p place) (*Ticket, error) {
		return q.join(ctx, grace, p, false)
	})
}

// call is a call that draws a ticket, as long as ctx allows. What it has to take back it
// takes back within one grace, however many requests that takes.
func (q *Queue) call(ctx context.Context, operation, entity string, draw func(ctx, grace context.Context, p place) (*Ticket, error)) (t *Ticket, err error) {
	ctx, told := q.core.Observe.Call(ctx, telemetry.Ticket, operation, func() string { return entity })
	defer told.End(&err)
	p, err := q.place(entity)
	if err != nil {
		return nil, err
	}
	ctx, cancel := ddb.Merge(ctx, q.open.Context())
	defer cancel()
	grace, end := ddb.Cleaning(ctx)
	defer end()
	return draw(ctx, grace, p)
}

// Do calls fn in its turn. The context of fn ends with ctx or with the turn,
// and then carries the turn's cause. Done follows, also when fn panics; its
// error is joined to that of fn, and is repo.ErrDone too where fn has none: with
// repo.ErrLockLost others may have been served while it ran. Inside fn a Lock of the same
// entity, with its context, is ErrNested.
func (q *Queue) Do(ctx context.Context, entity string, fn func(ctx context.Context, turn *Turn) error) error {
	return lease.Do(ctx, func(ctx context.Context) (*Turn, error) { return q.Lock(ctx, entity) }, (*Turn).inside, fn, (*Turn).Done)
}

// Close ends all waiting with ErrClosed, and takes every ticket that was drawn
// by this Queue out of its queue, as long as ctx allows: the contexts of turns
// end, with the cause ErrClosed, before their locks are free. The error joins
// one *repo.CloseError for each ticket that could not be taken out; that is passed
// over after its lease.
func (q *Queue) Close(ctx context.Context) error {
	return q.open.Close(ctx, func(t *Ticket) error {
		t.lease.Forget(ErrClosed)
		q.open.Remove(t)
		err := ctx.Err()
		if err == nil {
			err = t.end(ctx, ErrClosed)
		}
		if err == nil || errors.Is(t.lease.Ended(), ErrClosed) {
			return nil
		}
		return &repo.CloseError{Table: q.core.Name, Key: repo.Key{Partition: t.label}, Token: t.number, Err: err}
	})
}

// Entry is a place in a queue, as others see it.
type Entry struct {
	Number  int64         // the ticket; the lowest live one holds
	ID      string        // random, of this entry
	Owner   string        // Config.Owner of who made it; "" if it has none
	Since   time.Time     // when it came, on its owner's clock, in seconds; zero if it has no Owner
	Until   time.Time     // when others may pass it over, on its owner's clock
	Lease   time.Duration // how long it stays valid without a renewal
	Expired bool          // by the local clock and Config.ClockSkew
}

// List returns the queue of an entity in order of service. One request, one
// read unit per 4 KB.
func (q *Queue) List(ctx context.Context, entity string) ([]Entry, error) {
	p, err := q.place(entity)
	if err != nil {
		return nil, err
	}
	l, err := q.look(ctx, p)
	if err != nil {
		return nil, err
	}
	now := q.clock()
	entries := make([]Entry, len(l.entries))
	for i, e := range l.entries {
		entries[i] = Entry{Number: e.number, ID: e.id, Owner: e.owner, Since: e.since, Until: e.until, Lease: e.lease, Expired: e.until.Add(q.cfg.ClockSkew).Before(now)}
	}
	return entries, nil
}

// place is the queue of one entity.
type place struct {
	entity string
	label  string // the partition key, for errors
	raw    ddb.Item
}

// place checks an entity's name.
func (q *Queue) place(entity string) (place, error) {
	if entity == "" {
		return place{}, fmt.Errorf("%w: the entity has no name", repo.ErrKey)
	}
	p := place{entity: entity, label: q.cfg.Namespace + "/" + entity}
	var err error
	p.raw, err = q.table.EncodeKey(repo.Key{Partition: p.label})
	return p, err
}

// look reads a queue.
func (q *Queue) look(ctx context.Context, p place) (line, error) {
	res := q.core.Read(ctx, p.raw, ddb.Options{Holding: true})
	if res.Err != nil {
		return line{}, res.Err
	}
	return q.parse(p, res.Item)
}

func (q *Queue) parse(p place, image ddb.Item) (line, error) {
	l, err := parse(image)
	if err != nil {
		err = fmt.Errorf("queue %q in table %q: %w", p.label, q.core.Name, err)
	}
	return l, err
}

// refused reads the item that has refused a write. Where it cannot be read nothing tells
// what became of an earlier attempt that was not clean.
func (q *Queue) refused(p place, image ddb.Item, clean bool) (line, error) {
	l, err := q.parse(p, image)
	if err != nil && !clean {
		err = ddb.Join(repo.ErrOutcomeUnknown, err)
	}
	return l, err
}

// locked is the error that tells who is served now.
func (q *Queue) locked(p place, l line) error {
	e := &repo.LockedError{Table: q.core.Name, Key: repo.Key{Partition: p.label}}
	if len(l.entries) > 0 {
		first := l.entries[0]
		e.Owner, e.Until, e.Token = cmp.Or(first.owner, first.id), first.until, first.number
	}
	return e
}
