package optimistic

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/combine"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// engine is a Repository of any type.
type engine struct {
	table   *typed.Table
	policy  cas.Policy
	combine bool
	queues  local.Queues[*combine.Participant, written] // of this process's callers, by item
	cache   cache
	// fair makes a change under the item's lock; nil: Config.Fair is off. contention
	// says who goes to it.
	fair       typed.Locked
	contention *lock.Contention
	queue      *local.Line // for the same in transactions
}

func newEngine(table *typed.Table, cfg Config) (*engine, error) {
	if cfg.FailLocked && cfg.Fair {
		return nil, fmt.Errorf("%w: FailLocked and Fair: to give up at once, or to wait in a queue: choose one", repo.ErrConfig)
	}
	if err := settings.FillAll(settings.FailLocked(cfg.FailLocked, &cfg.Wait), settings.Default("Attempts", &cfg.Attempts, defaultAttempts), settings.Default("Warm", &cfg.Warm, 0)); err != nil {
		return nil, err
	}
	waiting, err := lock.NewSettings(table.Core, telemetry.Optimistic, cfg.Wait, leastWait, cfg.ClockSkew)
	if err != nil {
		return nil, err
	}
	core := table.Core
	r := &engine{table: table, combine: cfg.Combine, cache: newCache(core, cfg.Warm)}
	r.policy = cas.Policy{Settings: waiting, Attempts: cfg.Attempts, FailFast: cfg.Fair, Seen: core.Named(core.Version, core.Attr.LockToken, core.Type)}
	return r, nil
}

func (r *engine) create(ctx context.Context, item any, once *typed.Once) (any, error) {
	return cas.Create(ctx, r.table, item, r.policy.Settings, once)
}
