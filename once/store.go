package once

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a store. The zero value works.
type Config struct {
	// Lease is how long a run lasts whose process has died; one that is alive renews it.
	// Default 30 s, at least 1 s, at most 24 h.
	Lease time.Duration
	// Owner names the process to others. Default: host name and process id.
	Owner string
	// ClockSkew is how much clocks may differ: a run is taken for dead only when it is
	// past its end by more. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the waiting for a run of another: the sleep between looks, and their
	// number.
	Wait repo.Wait
	// Table has the names of the library's attributes, for how long an id is remembered
	// (Remember), the options by which results are coded, the attempt time-out of requests,
	// logger, meter and tracer.
	Table repo.TableConfig
}

// The attributes of a row, beside its lock.
const (
	attrID     = "id"
	attrDone   = "done"   // token of the run that has completed it
	attrResult = "result" // of that run
	attrReason = "reason" // why it has none; of that run, where there is no result
	// of the run that has the lock: what of its request tells it from another
	attrRequest = "request"
)

// Store keeps what came of operations, in one table. It is safe for concurrent use.
type Store struct {
	table  *repo.KeyTable
	locker *lock.Locker
	coding *coding // of results
	// request is the fingerprint of the request that calls are for; nil: it has none.
	request []byte
}

// New checks the settings. It sends and starts nothing.
func New(client repo.Client, tableName string, cfg Config) (*Store, error) {
	taking := lock.Config{Kind: telemetry.Once, Owner: cfg.Owner, Lease: cfg.Lease, Skew: cfg.ClockSkew, Wait: cfg.Wait}
	err := settings.FillAll(settings.Lease(&taking.Lease), settings.AttemptTimeout(&cfg.Table.AttemptTimeout, &taking.Lease),
		settings.ClockSkew(&taking.Skew), settings.Owner(&taking.Owner), settings.Wait(&taking.Wait, settings.LeastWait))
	if err != nil {
		return nil, err
	}
	taking.Every = taking.Lease / 3
	coding, made := newCoding(&cfg.Table)
	table, err := repo.NewKeyTable(client, tableName, repo.KeySchema{Partition: repo.KeyAttribute{Name: attrID}}, cfg.Table)
	if err != nil {
		return nil, err
	}
	made()
	core := protocol.Of(link.Table(table))
	if name := core.Attr.Clash([]string{attrID, attrDone, attrResult, attrReason, attrRequest}, nil); name != "" {
		return nil, fmt.Errorf("%w: Table.Attributes has the name %q, which a row keeps for itself", repo.ErrConfig, name)
	}
	return &Store{table: table, locker: lock.NewLocker(core, taking), coding: coding}, nil
}

// EnsureTable creates the table if it does not exist, with TTL, waits until it is
// active, and verifies the key schema of an existing one (ErrSchema): partition key
// "id", a string, and no sort key.
func (s *Store) EnsureTable(ctx context.Context) error { return s.table.EnsureTable(ctx) }
