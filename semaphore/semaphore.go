package semaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/repo"
)

// Semaphore gives out permits for resources and keeps their queued work, in
// one table. J is what travels with a job: any value that encoding/json can
// write and read. It is safe for concurrent use.
type Semaphore[J any] struct {
	*store // knows nothing of J, and so is compiled once for all types of jobs
}

// New checks the settings. It sends and starts nothing.
func New[J any](client Client, tableName string, cfg Config) (*Semaphore[J], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkJob[J](); err != nil {
		return nil, err
	}
	key := repo.KeySchema{Partition: repo.KeyAttribute{Name: pkName}, Sort: repo.KeyAttribute{Name: skName}}
	table, err := repo.NewKeyTable(client, tableName, key, cfg.Table)
	if err != nil {
		return nil, err
	}
	own := []string{pkName, skName, aQueued, aRunning, aDead, aLimit, aFixed, aToken, aChanges, aSwept, aID, aJob, aState, aAttempts, aUntil, aOwner, aNotBefore, aError, aMarked, aPaused, aDied, aAsked}
	cfg.Table = repo.TableConfig{} // the table has it, and its secret is nobody else's
	core := link.Table(table)
	if name := core.Attr.Clash(own, []string{permitPrefix, ownerPrefix, brokenPrefix}); name != "" {
		return nil, fmt.Errorf("%w: Table.Attributes has the name %q, which resources or jobs keep for themselves: on the end of a lease, for example, TTL would remove jobs", repo.ErrConfig, name)
	}
	core.Transacts = true // every change of a job is a transaction
	st := &store{client: client, table: table, decode: func(value string) (any, error) { return decode[J](value) }, core: core, cfg: cfg, clock: core.Clock,
		open: closing.New[held](ErrClosed), stations: recent.New[*station](maxStations)}
	st.lease = lease.Config{Length: cfg.Lease, Every: cfg.Lease / 3, Pause: ddb.Backoff{Min: cfg.Wait.Min, Max: cfg.Wait.Max},
		Clock: func() time.Time { return st.clock() }, Jumps: core.Jumps, Observe: core.Observe}
	return &Semaphore[J]{st}, nil
}

// checkJob refuses types that JSON has nothing for, such as channels.
func checkJob[J any]() (err error) {
	defer func() { _ = recover() }() // a type that codes itself may not like its zero value
	var none J
	var unsupported *json.UnsupportedTypeError
	if _, err := json.Marshal(none); errors.As(err, &unsupported) {
		return fmt.Errorf("%w: jobs of type %T cannot be written as JSON: %w", repo.ErrSchema, none, err)
	}
	return nil
}

// Format prints the semaphore's table.
func (s *store) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "resources of %v", s.table) }

// EnsureTable creates the table if it does not exist, waits until it is
// active, and verifies the key schema of an existing one (ErrSchema). A global
// table with strong consistency is refused, for it has no transactions.
func (s *store) EnsureTable(ctx context.Context) error { return s.table.EnsureTable(ctx) }
