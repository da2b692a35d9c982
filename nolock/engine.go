package nolock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// engine is a Repository of any type.
type engine struct {
	table  *typed.Table
	core   *protocol.Core
	cfg    Config
	policy cas.Policy
	// strategy is how its items take part in transactions.
	strategy *transaction.Strategy
}

func newEngine(table *typed.Table, cfg Config) (*engine, error) {
	core := table.Core
	switch {
	case core.EventSeconds && cfg.Unit != 0 && cfg.Unit != time.Second:
		return nil, fmt.Errorf("%w: Unit is %v, but the event time is stored in seconds", repo.ErrConfig, cfg.Unit)
	case core.EventSeconds:
		cfg.Unit = time.Second
	case cfg.Unit == 0 && cfg.MaxSkew > 0:
		return nil, fmt.Errorf("%w: MaxSkew needs Unit, what one step of the integer event time means", repo.ErrConfig)
	}
	if err := settings.FillAll(
		settings.Default("Unit", (*int64)(&cfg.Unit), 0),
		settings.Default("MaxSkew", (*int64)(&cfg.MaxSkew), int64(defaultSkew)), // a nanosecond is none
		settings.Default("Tombstone", &cfg.Tombstone, defaultTombstone),
		settings.Default("Attempts", &cfg.Attempts, defaultAttempts),
		settings.FailLocked(cfg.FailLocked, &cfg.Wait),
	); err != nil {
		return nil, err
	}
	waiting, err := lock.NewSettings(core, telemetry.NoLock, cfg.Wait, settings.LeastWait, cfg.ClockSkew)
	if err != nil {
		return nil, err
	}
	r := &engine{table: table, core: core, cfg: cfg}
	seen := core.Named(core.EventTime, core.Attr.LockToken, core.EventID, core.Version, core.Type)
	r.policy = cas.Policy{Settings: waiting, Attempts: cfg.Attempts, Seen: seen, Ring: true, Check: r.checkOrder, Tombstone: r.tombstone}
	r.strategy = &transaction.Strategy{
		Table: table, By: r, Settings: waiting,
		Check:     r.checkOrder,
		CheckNew:  func(item ddb.Item) error { return r.checkAhead(item[core.EventTime]) },
		Tombstone: r.buried,
	}
	if !cfg.FailLocked {
		r.strategy.Queue = transaction.NewQueue(core, waiting)
	}
	return r, nil
}

func (r *engine) create(ctx context.Context, item any) (any, error) {
	raw, err := r.table.Encode(item)
	if err == nil {
		err = r.checkAhead(raw[r.core.EventTime])
	}
	if err != nil {
		return nil, err
	}
	return cas.Create(ctx, r.table, item, r.policy.Settings, nil)
}

func (r *engine) remove(ctx context.Context, key repo.Key) (err error) {
	raw, err := typed.KeyToWrite(ctx, r.table, key)
	if err == nil {
		ctx, told := r.core.Observe.Call(ctx, telemetry.NoLock, "Delete", key.String)
		defer told.End(&err)
		remove := func(context.Context, any) error { return repo.Remove }
		_, _, err = cas.Run(ctx, r.table, &r.policy, key, raw, typed.Request{Change: remove})
	}
	return err
}

// checkOrder refuses a change that moves the event time back: the item would
// accept events that it has already overtaken.
func (r *engine) checkOrder(before, after ddb.Item) error {
	if order, ok := r.core.EventOrder(before, after); !ok || order > 0 {
		return fmt.Errorf("%w: the change moves the event time or id back", repo.ErrStale)
	}
	return r.checkAhead(after[r.core.EventTime])
}

// tombstone turns an item into a tombstone. Event time and id stay, and so does the
// version, which counts on. item is what is buried, as it was read; nil for a
// delete event, which has not read it: what the type does not know stays in its
// tombstone then, until an event brings the item back.
func (r *engine) tombstone(w *protocol.Write, item ddb.Item) {
	w.Remove(r.unburied(item)...)
	if item != nil && r.core.Version != "" {
		w.Set(r.core.Version, r.counted(item))
	}
	w.Set(r.core.Attr.Tombstone, ddb.True())
	w.Set(r.core.Attr.TTL, r.forgotten())
}

// unburied are the attributes that a tombstone of an item does not keep.
func (r *engine) unburied(item ddb.Item) []string {
	names := slices.DeleteFunc(slices.Clone(r.core.Mapped), func(name string) bool {
		return slices.Contains([]string{r.core.EventTime, r.core.EventID, r.core.Version, r.core.Attr.TTL}, name)
	})
	return append(names, typed.Unmapped(r.core, typed.Data(r.core, item))...)
}

// counted is the version of an item's tombstone: a deletion leaves its id among those of
// writers, of which as many are taken for all as the version has moved by. One that cannot
// be counted on stays.
func (r *engine) counted(item ddb.Item) types.AttributeValue {
	if lockless.CheckCounted(r.core, item) != nil {
		return item[r.core.Version]
	}
	return ddb.Integer(typed.Version(r.core, item) + 1)
}

// forgotten is when a deletion of now is forgotten.
func (r *engine) forgotten() types.AttributeValue {
	return ddb.Integer(r.policy.Clock().Add(r.cfg.Tombstone).Unix())
}
