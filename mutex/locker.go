package mutex

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ErrClosed is why a closed locker takes no lock. Nothing is held.
var ErrClosed = telemetry.NewError("closed", "locker is closed")

// Locker takes named locks in one table. It is safe for concurrent use.
//
// A name is whatever the table's partition key is: a string, []byte or a
// number; or a repo.Key, which a table with a sort key needs.
type Locker struct {
	client Client
	table  *repo.KeyTable
	taker  *lock.Locker
	line   *local.Line // of this process's callers
	cfg    Config
	open   *closing.Client[*Lock]
}

// New checks the settings. It sends and starts nothing.
func New(client Client, tableName string, cfg Config) (*Locker, error) {
	cfg = cfg.withDefaults()
	taking, err := cfg.taking()
	if err != nil {
		return nil, err
	}
	if err = settings.AttemptTimeout(&cfg.Table.AttemptTimeout, &taking.Lease)(); err != nil {
		return nil, err
	}
	table, err := repo.NewKeyTable(client, tableName, cfg.Key, cfg.Table)
	if err != nil {
		return nil, err
	}
	cfg.Table = repo.TableConfig{} // the table has it, and its secret is nobody else's
	core := protocol.Of(link.Table(table))
	if core.IsKey(cfg.Payload) || core.Reserved(cfg.Payload) || cfg.Payload == core.Attr.TTL {
		return nil, fmt.Errorf("%w: Payload: the attribute %q has another use already", repo.ErrConfig, cfg.Payload)
	}
	taker := lock.NewLocker(core, taking)
	if !cfg.Race {
		taker.HoldTimes = lock.NewHoldTimes()
	}
	line := local.NewLine(taker)
	line.BacksOff = cfg.Race // a queue on the row knows whose turn it is
	return &Locker{client: client, table: table, taker: taker, line: line, cfg: cfg, open: closing.New[*Lock](ErrClosed)}, nil
}

// Format prints the locker's table.
func (l *Locker) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "locks of %v", l.table) }

// EnsureTable creates the table if it does not exist, waits until it is
// active, and verifies the key schema of an existing one (ErrSchema).
func (l *Locker) EnsureTable(ctx context.Context) error { return l.table.EnsureTable(ctx) }

// Lock takes the lock of a name, waiting as long as ctx allows. One request if
// it is free, one and some reads if it is waited for in the queue, one more per try with
// Config.Race. ErrLocked, with *repo.LockedError, if the waiting ended first; ErrClosed if the locker was closed meanwhile.
//
// Callers of one locker stand in line for a name: one of them goes to the table, and
// its Unlock passes the lock on to the next, which then sends nothing itself.
//
// ctx governs the waiting, never the holding.
func (l *Locker) Lock(ctx context.Context, name any) (*Lock, error) {
	return l.lock(ctx, "Lock", name, false)
}

// TryLock is Lock without waiting: ErrLocked if somebody holds the name. One
// request. With Config.Clockless it never takes over a dead hold, which takes
// watching.
func (l *Locker) TryLock(ctx context.Context, name any) (*Lock, error) {
	return l.lock(ctx, "TryLock", name, true)
}

func (l *Locker) lock(ctx context.Context, operation string, name any, once bool) (_ *Lock, err error) {
	key, raw, err := l.key(name)
	if err != nil {
		return nil, err
	}
	ctx, told := l.taker.Core.Observe.Call(ctx, telemetry.Mutex, operation, key.String)
	defer told.End(&err)
	if !once {
		if err := nesting.Wait(ctx, nesting.ItemOf(l.taker.Core.Table, raw), key); err != nil {
			return nil, err
		}
	}
	ctx, end, err := l.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	turn, err := l.line.InTurn(ctx, lock.OwnKey(l.table, key, raw), raw, lock.Request{Row: true, Try: once}, nil)
	if err != nil {
		return nil, err
	}
	lock := newLock(l, turn)
	if closed := l.open.Add(lock); closed != nil {
		// Closed in this moment: Close waits for this release, and tries again
		// if it fails.
		ctx, cancel := ddb.DetachedTimeout(context.Background())
		defer cancel()
		return nil, errors.Join(closed, lock.release(ctx, true))
	}
	return lock, nil
}

// Do runs fn while it holds the lock of a name. The context of fn ends with
// ctx, and, with the cause, when the lock is lost. The errors of fn and of the
// unlock are joined; where fn has none that is repo.ErrDone too. An unlock that fails with
// ErrLockLost means that others may have run beside the last part of fn. Inside fn a Lock of
// the same name, with its context, is ErrNested.
func (l *Locker) Do(ctx context.Context, name any, fn func(ctx context.Context, lock *Lock) error) error {
	return lease.Do(ctx, func(ctx context.Context) (*Lock, error) { return l.Lock(ctx, name) }, (*Lock).inside, fn, (*Lock).Unlock)
}

// Close ends all waiting with ErrClosed and releases every lock that is held,
// until ctx is done: their contexts end before they are free. Its error joins one *repo.CloseError for each lock that could
// not be freed; a fail-open one is free when its lease is over. Calling Close
// again tries them again. Afterwards the locker takes no locks.
func (l *Locker) Close(ctx context.Context) error {
	return l.open.Close(ctx, func(lock *Lock) error {
		lock.hold.Forget(repo.ErrReleased)
		if err := lock.release(ctx, true); err != nil {
			return &repo.CloseError{Table: l.taker.Core.Name, Key: lock.Key(), Token: lock.Token(), Err: err}
		}
		return nil
	})
}

// Break ends a hold by force, for operators: the context of its holder ends
// with its next heartbeat, and its unlock fails with ErrLockLost. ErrNotHeld if
// the name is not held under this token (see [Locker.List]); token 0 is a hold
// that was taken without this library. Two requests, one more each time that the
// holder extends the lock between them.
//
// If an answer was lost, the row tells whether the hold was ended by force, by
// this call or another's; ErrOutcomeUnknown if it does not, as where the row has
// gone since. For that the break of token 0 leaves an id in the attribute
// "writers".
//
// With the context of a hold of the name it is ErrNested, as Release by the id of that hold:
// it would take the lock from itself.
func (l *Locker) Break(ctx context.Context, name any, token int64) (err error) {
	key, raw, err := l.key(name)
	if err != nil {
		return err
	}
	if err := nesting.Wait(ctx, nesting.ItemOf(l.taker.Core.Table, raw), key); err != nil {
		return err // nobody else can hold it
	}
	ctx, told := l.taker.Core.Observe.Call(ctx, telemetry.Mutex, "Break", key.String)
	defer told.End(&err)
	return l.taker.Break(ctx, key, raw, token)
}

// Release releases a lock by the id of its hold ([Lock.ID]), for holders that
// lost the handle: after a restart, or in another process. ErrNotHeld if nobody
// holds the name; ErrLocked, with *repo.LockedError, if another does. Otherwise
// it acts as this locker's mode says: FailClosed deletes the row. One request,
// two in FailClosed, which looks first whether the row is more than a lock. Whoever
// is the first in its queue takes the lock.
//
// If an answer was lost and nobody holds the name, the release is done;
// ErrOutcomeUnknown if another holds it: this call may have made way for it.
func (l *Locker) Release(ctx context.Context, name any, id string) error {
	key, raw, err := l.key(name)
	if err != nil {
		return err
	}
	if id == "" {
		return fmt.Errorf("%w: the id is empty", repo.ErrKey)
	}
	if err := nesting.Break(ctx, nesting.ItemOf(l.taker.Core.Table, raw), key, id); err != nil {
		return err
	}
	drop, seen := false, false
	if l.cfg.Mode == FailClosed {
		row, err := l.taker.Core.Get(ctx, raw)
		if err != nil {
			return err
		}
		drop = l.drops(row) && len(l.taker.Core.Waiting(row)) == 0
		held, err := l.taker.Core.ParseRecord(row)
		seen = err == nil && held.By == id
	}
	return l.taker.ReleaseByID(ctx, key, raw, id, drop, seen)
}

// key encodes a name.
func (l *Locker) key(name any) (repo.Key, ddb.Item, error) {
	key, ok := name.(repo.Key)
	if !ok {
		key = repo.Key{Partition: name}
	}
	raw, err := l.table.EncodeKey(key)
	return key, raw, err
}
