package repo

import (
	"cmp"
	"context"
	"crypto/cipher"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// KeyTable is a table of which only the primary key is known: for locks on
// rows of any kind, and for tools. It is safe for concurrent use.
type KeyTable struct {
	client  Client
	cfg     TableConfig
	pages   cipher.AEAD // of page tokens; nil without a secret
	pk, sk  field
	codec   *codec
	indexes []keyedIndex // that the table is to have
	core    *stored.Table
}

// KeySchema is the primary key of a table.
type KeySchema struct {
	Partition KeyAttribute
	Sort      KeyAttribute // its name is empty where the table has no sort key
}

// KeyAttribute is an attribute of a primary key.
type KeyAttribute struct {
	Name string
	Type types.ScalarAttributeType // S, N or B. Default: S
}

func (a KeyAttribute) field(which string, attrs Attributes) (field, error) {
	f := field{name: a.Name, goName: which + " key", kind: cmp.Or(string(a.Type), "S")}
	if f.kind != "S" && f.kind != "N" && f.kind != "B" {
		return f, fmt.Errorf("%w: the %s key %q has the type %q: use S, N or B", ErrConfig, which, a.Name, a.Type)
	}
	if len(f.name) > 255 {
		return f, fmt.Errorf("%w: the name of the %s key has %d bytes, DynamoDB takes 255", ErrConfig, which, len(f.name))
	}
	if role := attrs.roleOf(f.name); role != "" {
		return f, fmt.Errorf("%w: the %s key has the name %q, which the library keeps for itself: set TableConfig.Attributes.%s to another name", ErrConfig, which, f.name, role)
	}
	return f, nil
}

// NewKeyTable checks the settings and prepares every fixed expression. It
// sends nothing.
func NewKeyTable(client Client, name string, key KeySchema, cfg TableConfig) (*KeyTable, error) {
	if key.Partition.Name == "" {
		return nil, fmt.Errorf("%w: the partition key has no name", ErrConfig)
	}
	if key.Partition.Name == key.Sort.Name {
		return nil, fmt.Errorf("%w: partition and sort key both have the name %q", ErrConfig, key.Sort.Name)
	}
	s := &schema{}
	var err error
	if s.codec, err = newCodec(cfg); err != nil {
		return nil, err
	}
	attrs := cfg.Attributes.withDefaults()
	if s.pk, err = key.Partition.field("partition", attrs); err != nil {
		return nil, err
	}
	if key.Sort.Name != "" {
		if s.sk, err = key.Sort.field("sort", attrs); err != nil {
			return nil, err
		}
	}
	return newKeyTable(client, name, s, cfg)
}

func newKeyTable(client Client, name string, s *schema, cfg TableConfig) (*KeyTable, error) {
	if isNil(client) {
		return nil, fmt.Errorf("%w: the client is nil: pass dynamodb.NewFromConfig(...)", ErrConfig)
	}
	if !tableName.MatchString(name) {
		return nil, fmt.Errorf("%w: table name %q: use 3 to 255 letters, digits, _, - or ., or the table's ARN", ErrConfig, name)
	}
	if d := cfg.AttemptTimeout; d != 0 && d < time.Millisecond {
		return nil, fmt.Errorf("%w: AttemptTimeout is %v: use a millisecond at least", ErrConfig, d)
	}
	cfg.AttemptTimeout = cmp.Or(cfg.AttemptTimeout, 10*time.Second)
	switch {
	case cfg.Remember == 0:
		cfg.Remember = time.Hour
	case cfg.Remember < time.Minute:
		return nil, fmt.Errorf("%w: Remember is %v: ids of operations are remembered for a minute at least", ErrConfig, cfg.Remember)
	}
	pages, err := newCipher(cfg.PageSecret)
	if err != nil {
		return nil, err
	}
	cfg.PageSecret = nil
	jumps := cfg.Clock != nil
	if !jumps {
		cfg.Clock = time.Now
	}
	attrs := cfg.Attributes.withDefaults()
	if err := attrs.check(); err != nil {
		return nil, err
	}
	indexes, err := s.indexes(cfg)
	if err != nil {
		return nil, err
	}
	observe, err := telemetry.New(telemetry.Options{Table: name, Log: cfg.Logger, Meters: cfg.MeterProvider, Tracers: cfg.TracerProvider, Keys: cfg.TraceKeys, ErrorType: errorType})
	if err != nil {
		return nil, fmt.Errorf("%w: MeterProvider: %w", ErrConfig, err)
	}
	t := &KeyTable{client: client, cfg: cfg, pages: pages, pk: s.pk, sk: s.sk, codec: s.codec, indexes: indexes}
	t.core = stored.New(&stored.Table{
		Table:        &ddb.Table{Client: client, Name: name, Timeout: cfg.AttemptTimeout, Observe: observe, Classify: classify, Partition: s.pk.name, Sort: s.sk.name, Mapped: s.mapped},
		Attr:         stored.Attributes(attrs),
		Retention:    cfg.Remember,
		Version:      s.version.name,
		MostVersion:  mostVersion(s.version.typ),
		EventTime:    s.eventTime.name,
		EventID:      s.eventID.name,
		IDKind:       s.eventID.kind,
		EventSeconds: s.eventTime.typ == timeType || s.eventTime.typ == unixTimeType,
		KeyOf:        func(key ddb.Item) fmt.Stringer { return t.DecodeKey(key) },
		Clock:        cfg.Clock, Jumps: jumps,
		AnyAttribute: cfg.AnyAttribute,
		Roles: stored.Roles{
			Type: s.entity.name, TypeName: ddb.Text(s.entity.role.of), Mistyped: func(raw ddb.Item) error { return t.mistyped(s.entity, raw) },
			Created: s.created.name, Updated: s.updated.name, Stamp: s.stamps,
		},
		Unique: stored.Uniques{All: s.unique, RowOf: s.claimKey}, Transacts: len(s.unique) > 0,
	})
	return t, nil
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

// Format prints the table's name.
func (t *KeyTable) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "table %q", t.Name()) }

// Name is the table's name.
func (t *KeyTable) Name() string { return t.core.Name }

// EncodeKey returns the attributes of a primary key. ErrKey if a part is
// missing, empty, too long or of the wrong type.
func (t *KeyTable) EncodeKey(key Key) (map[string]types.AttributeValue, error) {
	pk, err := t.codec.encodePart("partition", key.Partition, t.pk, maxPartition)
	if err != nil {
		return nil, err
	}
	item := ddb.Item{t.pk.name: pk}
	if t.sk.name == "" {
		if key.Sort != nil {
			return nil, fmt.Errorf("%w: the table has no sort key, but Key.Sort is set", ErrKey)
		}
		return item, nil
	}
	sk, err := t.codec.encodePart("sort", key.Sort, t.sk, maxSort)
	if err != nil {
		return nil, err
	}
	item[t.sk.name] = sk
	return item, nil
}

// DecodeKey reads the primary key of an item. Numbers come back as
// attributevalue.Number, which is a key part again.
func (t *KeyTable) DecodeKey(raw map[string]types.AttributeValue) Key {
	key := Key{Partition: t.pk.bare(scalar(raw[t.pk.name]))}
	if t.sk.name != "" {
		key.Sort = t.sk.bare(scalar(raw[t.sk.name]))
	}
	return key
}

func scalar(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return attributevalue.Number(v.Value)
	case *types.AttributeValueMemberB:
		return v.Value
	}
	return nil
}

// Inspect tells who holds an item. ErrNotFound if there is no item and no
// stub. One request, one read unit per 4 KB.
func (t *KeyTable) Inspect(ctx context.Context, key Key) (Lock, error) {
	k, err := t.EncodeKey(key)
	if err != nil {
		return Lock{}, err
	}
	raw, err := t.core.Get(ctx, k)
	if err != nil {
		return Lock{}, err
	}
	if len(raw) == 0 {
		return Lock{}, fmt.Errorf("%w: %v in table %q", ErrNotFound, key, t.Name())
	}
	l, err := t.core.ParseRecord(raw)
	if err != nil {
		return Lock{}, fmt.Errorf("%w: %s: %w", ErrSchema, t.core.ItemName(key), err)
	}
	return lockOf(l), nil
}

// Lock is what an item says of its lock.
type Lock struct {
	Held  bool          // somebody holds it, or held it and let it expire
	Owner string        // the holder, without the random part of the id
	Token int64         // fencing token of the hold; 0 if it was taken by hand
	Last  int64         // last token given out on this item, or number drawn by one who waits
	Until time.Time     // when others may take over, on the holder's clock
	Lease time.Duration // 0 if unknown
	Since time.Time     // when the holder asked for it, on its own clock: without a queue it took it then; zero if unknown
	Stub  bool          // the key has no data yet
}

// Expired reports whether others may take over, by the local clock.
func (l Lock) Expired(now time.Time) bool { return l.Held && l.Until.Before(now) }
