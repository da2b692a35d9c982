package nolock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a repository. The zero value works and is the
// safest.
type Config struct {
	// Unit is what one step of an integer event time means, for example
	// time.Millisecond since 1970. 0: not a time (a sequence number). Fields
	// of type time.Time or attributevalue.UnixTime keep whole seconds and need
	// none: where an item can have two events in one second, use an integer.
	Unit time.Duration
	// MaxSkew refuses events dated further ahead of the local clock, which
	// would freeze the item until then. Default 1 h where the unit is known.
	MaxSkew time.Duration
	// Tombstone is how long a deletion is remembered. Default 15 days: longer
	// than SQS can keep a message.
	Tombstone time.Duration
	// Attempts bounds how often Update is tried when others write first.
	// Default 64.
	Attempts int
	// FailLocked gives up at once with ErrLocked when somebody holds the
	// item's lock. Default: wait, as long as ctx and Wait allow.
	FailLocked bool
	// ClockSkew is how much clocks may differ before an expired lock is
	// broken. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the sleeps after conflicts and while the item is locked.
	Wait repo.Wait
}

const (
	defaultSkew      = time.Hour
	defaultTombstone = 15 * 24 * time.Hour
	defaultAttempts  = 64
)

// Repository implements [repo.Repository] by event times. It is safe for
// concurrent use.
type Repository[T any] struct {
	table  *cas.Table[T]
	core   *protocol.Core
	cfg    Config
	policy cas.Policy
}

var _ repo.Repository[struct{}] = (*Repository[struct{}])(nil)

// New checks the settings; T must have a field tagged repo:"eventtime". It
// sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Repository[T], error) {
	if table == nil {
		return nil, fmt.Errorf("%w: the table is nil: make one with repo.NewTable", repo.ErrConfig)
	}
	inner := cas.TableOf(table)
	core := inner.Core
	if core.EventTime == "" {
		return nil, fmt.Errorf("%w: the nolock strategy orders writes by event time: add an integer field tagged `repo:\"eventtime\"` to %T", repo.ErrSchema, *new(T))
	}
	switch {
	case core.EventSeconds && cfg.Unit != 0 && cfg.Unit != time.Second:
		return nil, fmt.Errorf("%w: Unit is %v, but the event time is stored in seconds", repo.ErrConfig, cfg.Unit)
	case core.EventSeconds:
		cfg.Unit = time.Second
	case cfg.Unit == 0 && cfg.MaxSkew > 0:
		return nil, fmt.Errorf("%w: MaxSkew needs Unit, what one step of the integer event time means", repo.ErrConfig)
	}
	if err := settings.FillAll(
		settings.Default("Unit", &cfg.Unit, 0),
		settings.Default("MaxSkew", &cfg.MaxSkew, defaultSkew),
		settings.Default("Tombstone", &cfg.Tombstone, defaultTombstone),
		settings.Default("Attempts", &cfg.Attempts, defaultAttempts),
	); err != nil {
		return nil, err
	}
	if cfg.FailLocked {
		cfg.Wait.Attempts = 1
	}
	waiting, err := lock.NewSettings(cfg.Wait, settings.LeastWait, cfg.ClockSkew)
	if err != nil {
		return nil, err
	}
	r := &Repository[T]{table: inner, core: core, cfg: cfg}
	seen := []string{core.EventTime, core.Attr.LockToken}
	for _, name := range []string{core.EventID, core.Version} {
		if name != "" {
			seen = append(seen, name)
		}
	}
	r.policy = cas.Policy{Settings: waiting, Attempts: cfg.Attempts, Seen: seen, Ring: true, Check: r.checkOrder, Tombstone: r.tombstone}
	return r, nil
}

// Get reads an item with a consistent read. One request, one read unit per 4 KB.
func (r *Repository[T]) Get(ctx context.Context, key repo.Key) (T, error) {
	return r.table.Get(ctx, key)
}

// Create writes an item that must not exist yet. ErrStale if it was deleted by
// a later event. One request; two over a tombstone, which may have kept what its
// type did not know.
func (r *Repository[T]) Create(ctx context.Context, item T) (T, error) {
	raw, err := r.table.Encode(item)
	if err == nil {
		err = r.checkAhead(raw[r.core.EventTime])
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return cas.Create(ctx, r.table, item, r.policy.Settings, nil)
}

// Update reads an item, runs change on it, and writes the difference if nobody
// else wrote meanwhile; else it tries again. A change that moves the event time
// back is refused with ErrStale. Two requests, one more per conflict. An Update
// or Upsert of the same item from inside change, with its context, is refused
// with ErrLocked: each would run the other again.
func (r *Repository[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return cas.Update(ctx, r.table, &r.policy, key, false, change)
}

// Upsert is Update, but where there is no item change gets a new one with
// nothing but its key.
func (r *Repository[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return cas.Update(ctx, r.table, &r.policy, key, true, change)
}

// Delete deletes an item as it is now and leaves a tombstone with its event
// time. Two requests. To apply a delete event that carries its own time, in one
// request, use [Repository.DeleteAt].
func (r *Repository[T]) Delete(ctx context.Context, key repo.Key) error {
	raw, err := r.table.EncodeKey(key)
	if err == nil {
		remove := func(context.Context, *T) error { return repo.Remove }
		_, _, err = cas.Run(ctx, r.table, &r.policy, key, raw, cas.Request[T]{Change: remove})
	}
	return err
}

// checkOrder refuses a change that moves the event time back: the item would
// accept events that it has already overtaken.
func (r *Repository[T]) checkOrder(before, after ddb.Item) error {
	if order, ok := r.core.EventOrder(before, after); !ok || order > 0 {
		return fmt.Errorf("%w: the change moves the event time or id back", repo.ErrStale)
	}
	return r.checkAhead(after[r.core.EventTime])
}

// tombstone turns an item into a tombstone. Event time and id stay, and so does the
// version, which counts on. item is what is buried, as it was read; nil for a
// delete event, which has not read it: what the type does not know stays in its
// tombstone then, until an event brings the item back.
func (r *Repository[T]) tombstone(w *protocol.Write, item ddb.Item) {
	for _, name := range r.core.Mapped {
		switch name {
		case r.core.EventTime, r.core.EventID, r.core.Version, r.core.Attr.TTL:
		default:
			w.Remove(name)
		}
	}
	w.Remove(cas.Unmapped(r.core, cas.Data(r.core, item))...)
	w.Set(r.core.Attr.Tombstone, ddb.True())
	w.Set(r.core.Attr.TTL, r.forgotten())
}

// forgotten is when a deletion of now is forgotten.
func (r *Repository[T]) forgotten() types.AttributeValue {
	return ddb.Integer(r.policy.Clock().Add(r.cfg.Tombstone).Unix())
}
