package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a repository. The zero value works and is the
// safest.
type Config struct {
	// Attempts bounds how often a change is tried when others write first. From 32 on,
	// after three quarters of them, a change takes the item's lock: three writes in the place of
	// one, and it does not lose again. Default 64.
	Attempts int
	// FailLocked gives up at once with ErrLocked when somebody holds the
	// item's lock. Default: wait, as long as ctx and Wait allow.
	FailLocked bool
	// ClockSkew is how much clocks may differ before an expired lock is
	// broken. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the sleeps after conflicts and while the item is locked. Min is
	// 10 ms by default, twice that of a lock: what follows is two requests, a read
	// and a write. With Max up to 50 ms the item of a refused write is tried again at
	// once after each sleep, too: more changes, for more writes that are refused.
	Wait repo.Wait
	// Combine lets one write commit the changes of all callers of this process
	// that wait for the item. Readers of a stream then see fewer of the item's
	// states: those between two changes of one write were never stored. A
	// change gets the item as the change before it left it, and may run again.
	// A change that does not return blocks every caller in its group.
	Combine bool
	// Warm is how many items, those changed last, are kept in memory, for a
	// change to start from without a read. What is kept is used only where it
	// has proved true before, for as long as that, and the version condition protects the write: a
	// change may run once more, nothing is lost. An error of a change is
	// confirmed on a fresh read. As with every version, others must count it: what
	// a program writes that does not is not seen until the item is read again.
	// Default 0: none.
	Warm int
	// Fair changes an item that other processes want too under its lock, for
	// which it waits in the queue on the item: first come, first served, and no
	// write is wasted (see lockedread.Config.Race). An item is taken for wanted
	// for 2 s after others wrote first or held it.
	//
	// Not for transactions whose items are all wanted alike: over 2 of 20 they make
	// 0.59 to 0.71 of the changes by hand, over 5 of 20 0.30 to 0.40, and without Fair
	// 1.08 to 1.23 (docs/performance.md, "Transactions"). It is for few very hot items
	// among many.
	Fair bool
}

const (
	defaultAttempts = 64
	leastWait       = 10 * time.Millisecond
)

// Repository implements [repo.Repository] by versions. It is safe for
// concurrent use.
type Repository[T any] struct {
	table *repo.Table[T]
	r     *engine
}

var _ repo.Repository[struct{}] = (*Repository[struct{}])(nil)

// New checks the settings; T must have a field tagged repo:"version". It sends
// and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Repository[T], error) {
	if err := typed.CheckMade(table); err != nil {
		return nil, err
	}
	inner := typed.TableOf(table)
	if inner.Core.Version == "" {
		return nil, fmt.Errorf("%w: the optimistic strategy counts versions: add an integer field tagged `repo:\"version\"` to %T", repo.ErrSchema, *new(T))
	}
	r, err := newEngine(inner, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Fair {
		locker, err := lockedread.New(table, lockedread.Config{Renew: true, Combine: cfg.Combine, ClockSkew: cfg.ClockSkew, Wait: cfg.Wait})
		if err != nil {
			return nil, err
		}
		r.fair, r.contention, r.queue = typed.LockedBy(locker), lock.NewContention(), local.Of(locker)
	} else if !cfg.FailLocked {
		r.queue = transaction.NewQueue(inner.Core, r.policy.Settings)
	}
	return &Repository[T]{table, r}, nil
}

// Table is the table that the repository was made of, for what is no matter of a
// strategy: Query, Scan, GetMany, EnsureTable.
func (r *Repository[T]) Table() *repo.Table[T] { return r.table }

// Get reads an item with a consistent read. One request, one read unit per 4 KB.
func (r *Repository[T]) Get(ctx context.Context, key repo.Key) (T, error) {
	if err := nesting.Read(ctx); err != nil {
		return *new(T), err
	}
	return r.table.Get(ctx, key)
}

// Create writes an item that must not exist yet; its version is 1. One request.
func (r *Repository[T]) Create(ctx context.Context, item T) (T, error) {
	return typed.As[T](r.r.create(ctx, &item, nil))
}

// Update reads an item, runs change on it, and writes the difference if nobody
// else wrote meanwhile; else it tries again with the item that the failed
// write returned. Two requests (a read and a write), and one more per conflict;
// one request where the caller of this process before it has just written the
// item, or it is kept warm. *repo.ConflictError when the attempts are used up.
//
// Callers of this process that change the same item do so one after the other,
// in the order of their calls. One that takes longer than a quarter of a second
// is overtaken: who writes first wins, as between processes. A call that changes
// the same item from inside change, with its context, is refused with ErrNested.
func (r *Repository[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](r.r.update(ctx, key, false, typed.ChangeOf(change), nil))
}

// Upsert is Update, but where there is no item change gets a new one with
// nothing but its key.
func (r *Repository[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](r.r.update(ctx, key, true, typed.ChangeOf(change), nil))
}

// Delete deletes an item as it is now. Two requests, and one more per conflict.
func (r *Repository[T]) Delete(ctx context.Context, key repo.Key) error {
	return r.r.remove(ctx, key, nil)
}

// Save writes the whole item if the stored version is still item's, and
// returns it with its new version. *repo.ConflictError if others wrote first;
// ErrNotFound if the item is gone. One request; none where the caller of this
// process before it, in the same line as changes, has found or left a newer version.
//
// A zero version means that the item does not exist yet, or is one from before the
// library, stored without a version or with version 0: it is replaced, in one request
// more. ErrExists if it has another version. Create refuses both.
//
// The version is all that is compared: a struct from before an item was deleted
// and made anew passes for the new one at the same version, in one request more if
// this process has seen the one before. Update is safe against that.
func (r *Repository[T]) Save(ctx context.Context, item T) (T, error) {
	if r.table.Version(item) != 0 {
		return typed.As[T](r.r.save(ctx, &item))
	}
	made, exists := r.Create(ctx, item)
	if !errors.Is(exists, repo.ErrExists) {
		return made, exists
	}
	// Proved by the item that is there: so nothing of the creation can still land.
	adopted, err := typed.As[T](r.r.save(ctx, &item))
	if errors.Is(err, repo.ErrConflict) || errors.Is(err, repo.ErrNotFound) {
		return adopted, exists
	}
	return adopted, err
}

// Remove deletes an item if the stored version is still item's. One request,
// which is not repeated once it may have been applied: ErrOutcomeUnknown then.
// As with Save the version is all that is compared.
func (r *Repository[T]) Remove(ctx context.Context, item T) error {
	return r.r.removeVersion(ctx, &item)
}
