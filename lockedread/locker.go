package lockedread

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// Locker locks and reads the items of a table. It is safe for concurrent use.
type Locker[T any] struct {
	table *repo.Table[T]
	core  *ddb.Core
	cfg   Config
	clock func() time.Time
}

// New checks the settings. It sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Locker[T], error) {
	if table == nil {
		return nil, fmt.Errorf("%w: the table is nil: make one with repo.NewTable", repo.ErrConfig)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Locker[T]{table: table, core: table.Core(), cfg: cfg, clock: time.Now}, nil
}

// Acquire locks an item and reads it, waiting as long as ctx allows. One
// request if nobody holds it, one more per try; a request bills write units of
// the whole item, also when it fails. ErrNotFound if there is no item;
// ErrLocked, with *repo.LockedError, if the waiting ended first.
//
// ctx governs the waiting, never the holding.
func (l *Locker[T]) Acquire(ctx context.Context, key repo.Key) (*Held[T], error) {
	return l.acquire(ctx, key, taking{})
}

// TryAcquire is Acquire without waiting: ErrLocked if somebody holds the item.
// One request. With Config.Clockless it never takes over a dead hold, which
// takes watching.
func (l *Locker[T]) TryAcquire(ctx context.Context, key repo.Key) (*Held[T], error) {
	return l.acquire(ctx, key, taking{once: true})
}

// AcquireOrCreate is Acquire, but a key without an item is locked too: the
// item of the hold is then new, with nothing but its key ([Held.Exists] is
// false), and comes into being with the commit. Two requests for a new item.
func (l *Locker[T]) AcquireOrCreate(ctx context.Context, key repo.Key) (*Held[T], error) {
	return l.acquire(ctx, key, taking{create: true})
}

// Break ends a hold by force, for operators: the holder of token finds its
// commit refused with ErrLockLost. Token 0 breaks a hold that was taken by
// hand. ErrNotHeld if the item is not held under this token (see
// repo.Table.Inspect). Two requests.
func (l *Locker[T]) Break(ctx context.Context, key repo.Key, token int64) error {
	k, err := l.table.EncodeKey(key)
	if err != nil {
		return err
	}
	raw, err := l.core.Get(ctx, k)
	if err != nil {
		return repo.Classify(err)
	}
	turn := &guard.Turn{Core: l.core, Key: key, Raw: k}
	seen, err := turn.Lock(raw)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return guard.NotFound(key, l.core.Table)
	}
	if !seen.Busy() || seen.Held != token {
		return fmt.Errorf("%w: item %v, token %d", repo.ErrNotHeld, key, token)
	}
	in, err := l.core.Break(k, raw)
	if err != nil {
		return err
	}
	res := l.core.Update(ctx, in, ddb.Options{})
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Condition:
		now, err := turn.Lock(res.Image)
		if err == nil && !res.Clean && token != 0 && now.Stolen == token {
			return nil // an earlier attempt broke it
		}
		return fmt.Errorf("%w: item %v, token %d: the hold ended or moved on meanwhile", repo.ErrNotHeld, key, token)
	}
	return guard.Failed(key, res)
}
