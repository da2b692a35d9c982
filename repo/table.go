package repo

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Table maps T to the items of one DynamoDB table. It is safe for concurrent
// use and holds no state of items.
type Table[T any] struct {
	client Client
	cfg    TableConfig
	schema *schema
	core   *ddb.Core
	known  []string // every attribute of T, keys included
}

// NewTable checks T and the settings, and prepares every fixed expression. It
// sends nothing. An error (ErrSchema, ErrConfig) says how to mend it.
func NewTable[T any](client Client, name string, cfg TableConfig) (*Table[T], error) {
	if isNil(client) {
		return nil, fmt.Errorf("%w: the client is nil: pass dynamodb.NewFromConfig(...)", ErrConfig)
	}
	if !tableName.MatchString(name) {
		return nil, fmt.Errorf("%w: table name %q: use 3 to 255 letters, digits, _, - or ., or the table's ARN", ErrConfig, name)
	}
	if cfg.AttemptTimeout < 0 {
		return nil, fmt.Errorf("%w: AttemptTimeout is negative (%v)", ErrConfig, cfg.AttemptTimeout)
	}
	if cfg.AttemptTimeout == 0 {
		cfg.AttemptTimeout = 10 * time.Second
	}
	attrs := cfg.Attributes.withDefaults()
	if err := attrs.check(); err != nil {
		return nil, err
	}
	s, err := newSchema(reflect.TypeFor[T](), attrs)
	if err != nil {
		return nil, err
	}
	observe, err := ddb.NewObserver(cfg.Logger, cfg.MeterProvider, cfg.TracerProvider)
	if err != nil {
		return nil, fmt.Errorf("%w: MeterProvider: %w", ErrConfig, err)
	}
	core := ddb.NewCore(ddb.Core{
		Sender:    &ddb.Sender{Client: client, Table: name, Timeout: cfg.AttemptTimeout, Observe: observe},
		Attr:      ddb.Attributes(attrs),
		Partition: s.pk.name,
		Sort:      s.sk.name,
		Version:   s.version.name,
		EventTime: s.eventTime.name,
		EventID:   s.eventID.name,
		IDKind:    s.eventID.kind,
		Mapped:    s.mapped,
	})
	known := append([]string{s.pk.name}, s.mapped...)
	if s.sk.name != "" {
		known = append(known, s.sk.name)
	}
	return &Table[T]{client: client, cfg: cfg, schema: s, core: core, known: known}, nil
}

// tableName are the names that DynamoDB takes, and ARNs.
var tableName = regexp.MustCompile(`^([A-Za-z0-9_.-]{3,255}|arn:[^ ]+)$`)

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// Name is the table's name.
func (t *Table[T]) Name() string { return t.core.Table }

// Core is for the packages of this module that implement strategies; its type
// is internal and changes without notice.
func (t *Table[T]) Core() *ddb.Core { return t.core }

// Get reads an item with a consistent read. ErrNotFound if there is none, also
// for stubs and tombstones. One request, one read unit per 4 KB.
func (t *Table[T]) Get(ctx context.Context, key Key) (T, error) {
	var zero T
	k, err := t.EncodeKey(key)
	if err != nil {
		return zero, err
	}
	raw, err := t.core.Get(ctx, k)
	if err != nil {
		return zero, Classify(err)
	}
	if t.core.Hidden(raw) {
		return zero, fmt.Errorf("%w: %v in table %q", ErrNotFound, key, t.Name())
	}
	return t.Decode(raw)
}

// Inspect tells who holds an item. ErrNotFound if there is no item and no
// stub. One request, one read unit per 4 KB.
func (t *Table[T]) Inspect(ctx context.Context, key Key) (Lock, error) {
	k, err := t.EncodeKey(key)
	if err != nil {
		return Lock{}, err
	}
	raw, err := t.core.Get(ctx, k)
	if err != nil {
		return Lock{}, Classify(err)
	}
	if len(raw) == 0 {
		return Lock{}, fmt.Errorf("%w: %v in table %q", ErrNotFound, key, t.Name())
	}
	l, err := t.core.ParseLock(raw)
	if err != nil {
		return Lock{}, fmt.Errorf("%w: item %v: %w", ErrSchema, key, err)
	}
	return Lock{Held: l.Busy(), Owner: l.Owner(), Token: l.Held, Last: l.Token, Until: l.Until, Lease: l.Lease, Stub: l.Stub}, nil
}

// Lock is what an item says of its lock.
type Lock struct {
	Held  bool          // somebody holds it, or held it and let it expire
	Owner string        // the holder, without the random part of the id
	Token int64         // fencing token of the hold; 0 if it was taken by hand
	Last  int64         // last token given out on this item
	Until time.Time     // when others may take over, on the holder's clock
	Lease time.Duration // 0 if unknown
	Stub  bool          // the key has no data yet
}

// Expired reports whether others may take over, by the local clock.
func (l Lock) Expired(now time.Time) bool { return l.Held && l.Until.Before(now) }
