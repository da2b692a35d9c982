package repo

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/stored"
)

// Client is what a table needs of *dynamodb.Client. It gets no more methods
// without a new major version of this module: what stands in for a client, such as
// a wrapper or a fake, goes on to fit.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// TableConfig are the settings of a table. The zero value works.
type TableConfig struct {
	// Attributes renames the library's own attributes. Every program that
	// writes the table must use the same names.
	Attributes Attributes
	// AttemptTimeout bounds one attempt of a request. Default 10 s; a lock's
	// requests use a third of its lease if that is shorter.
	AttemptTimeout time.Duration
	// Remember is for how long items remember the ids of operations that were made
	// once, at least: less what clocks differ by, and at most twice as long as long
	// as operations come. Longer than a message may come again; the same in all
	// programs. Default 1 h, at least 1 min.
	Remember time.Duration
	// PageSecret encrypts the tokens of Page: 16 bytes or more that nobody can guess,
	// the same in all processes. Default: none, and Page is ErrConfig.
	PageSecret []byte
	// EncoderOptions and DecoderOptions set options of attributevalue, by which all
	// items and keys are coded: another TagKey, such as that of another mapper, types
	// that encode themselves as texts (UseEncodingMarshalers and
	// UseEncodingUnmarshalers), the form of times. What is written must be read back as
	// it was, so set both. They are called once. Default: attributevalue's own; with
	// others coding takes about twice as long.
	EncoderOptions func(*attributevalue.EncoderOptions)
	DecoderOptions func(*attributevalue.DecoderOptions)
	// Clock is the wall clock: by it ends of leases are written, and those of others
	// found to be over, items stamped, and ids of operations forgotten. It is called
	// often, from many goroutines. It may be wrong: by more than ClockSkew that costs
	// exclusion, as with every wrong clock, and never a true verdict. Where it has gone on by
	// more than the machine's own clock, what this process holds ends as if the machine
	// had been suspended. Clockless takeovers, time-outs and pauses between attempts do
	// not go by it. For tests, such as that of package repotest, which goes on at the
	// test's word; waits and leases look at it every 10 ms. Default: time.Now.
	Clock func() time.Time
	// AnyAttribute lets the expressions of Apply and Filter name attributes that T does not
	// have, such as those of another type whose items share the table. Default: off, and
	// such a name, which may be a misspelt one, is ErrConfig before anything is sent. Within
	// an attribute, paths are free.
	AnyAttribute bool
	// Indexes are secondary indexes that the table is to have. EnsureTable makes them with a
	// new table, waits until they are filled, and tells which of them an existing one lacks
	// (ErrSchema). [Index] reads by any that is there. Default: none is looked for.
	Indexes []IndexSchema
	// AllowReplicas accepts a global table with eventually consistent
	// replicas. Locks and conditions then hold within one Region only.
	AllowReplicas bool

	// Logger is told of what somebody may have to look after, such as locks that were
	// lost, taken over or broken: docs/telemetry.md has the events. Default: none.
	Logger *slog.Logger
	// MeterProvider gets the metrics. Default: the global one of OpenTelemetry, which
	// measures nothing until the program installs one; noop.NewMeterProvider() of
	// go.opentelemetry.io/otel/metric/noop switches them off.
	MeterProvider metric.MeterProvider
	// TracerProvider gets the spans. Default and how to switch them off: as with
	// MeterProvider.
	TracerProvider trace.TracerProvider
	// TraceKeys puts keys of items, and names of locks, queues and resources, on spans
	// (dynahold.key), with the texts of errors, which may have them. Default: off, for
	// they may be personal data. Metrics never have them.
	TraceKeys bool
}

// Format prints the settings that are set, and never PageSecret.
func (c TableConfig) Format(f fmt.State, _ rune) {
	redact.Exported(f, "repo.TableConfig", c, "PageSecret")
}

// LogValue is what a log has of the settings: as Format.
func (c TableConfig) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// Attributes are the names of the attributes that the library keeps on items.
// An empty name means the default.
type Attributes struct {
	LockedBy   string // S, while held: <owner>#<random id>. Default "lockedBy"
	LockTime   string // N, while held: Unix seconds, when others may take over. Default "lockTime"
	LockLease  string // N, while held: the lease in seconds. Default "lockLease"
	LockHeld   string // N, while held: token of the hold. Default "lockHeld"
	LockToken  string // N: next token to be given out. Default "lockToken"
	LockStolen string // N: newest token whose hold somebody else ended. Default "lockStolen"
	LockStub   string // BOOL: the key was locked before it had data. Default "lockStub"
	LockQueue  string // L of B, while others wait in line: 4 bytes for each. Default "lockQueue"
	Writers    string // B: random ids of the latest writes. Default "writers"
	// Once begins the names of three attributes that remember the ids of operations:
	// BS, the present ones; with "Past" BS, those before; with "Epoch" N, since when
	// they are the present ones, or S, that and where others lie. Default "once"
	Once      string
	Tombstone string // BOOL: deleted, kept so that late events stay out. Default "tombstone"
	TTL       string // N: when DynamoDB may remove a stub, a tombstone, or a row beside an item; T may map it too, as a number. Default "expiresAt"
}

func (a Attributes) withDefaults() Attributes {
	defaults := Attributes{"lockedBy", "lockTime", "lockLease", "lockHeld", "lockToken", "lockStolen", "lockStub", "lockQueue", "writers", "once", "tombstone", "expiresAt"}
	v, d := reflect.ValueOf(&a).Elem(), reflect.ValueOf(defaults)
	for i := range v.NumField() {
		if v.Field(i).String() == "" {
			v.Field(i).SetString(d.Field(i).String())
		}
	}
	return a
}

// maxName is DynamoDB's limit for the name of an attribute, in bytes.
const maxName = 255

// roleOf is the role of an attribute's name, "" if the library does not keep it.
func (a Attributes) roleOf(name string) string {
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		if v.Field(i).String() == name {
			return v.Type().Field(i).Name
		}
	}
	if once := stored.Attributes(a).OnceNames(); slices.Contains(once[:], name) {
		return "Once"
	}
	if name == stored.Attributes(a).UnreadWriter() || name == stored.Attributes(a).Delegated() {
		return "Writers"
	}
	return ""
}

// check refuses two roles for one attribute, and names that DynamoDB does not
// take.
func (a Attributes) check() error {
	seen := map[string]string{}
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		role, name := v.Type().Field(i).Name, v.Field(i).String()
		most := maxName
		names := []string{name}
		if once := stored.Attributes(a).OnceNames(); role == "Once" {
			names = once[:]
			most -= len(names[2]) - len(name)
		} else if role == "Writers" {
			names = append(names, stored.Attributes(a).UnreadWriter(), stored.Attributes(a).Delegated())
			most -= len(names[2]) - len(name)
		}
		switch {
		case !utf8.ValidString(name):
			return fmt.Errorf("%w: TableConfig.Attributes.%s: the name %q is not valid UTF-8", ErrConfig, role, name)
		case len(name) > most:
			return fmt.Errorf("%w: TableConfig.Attributes.%s: the name has %d bytes, at most %d are possible", ErrConfig, role, len(name), most)
		}
		for _, name := range names {
			if other, ok := seen[name]; ok {
				return fmt.Errorf("%w: TableConfig.Attributes gives the name %q to %s and to %s: each needs its own", ErrConfig, name, other, role)
			}
			seen[name] = role
		}
	}
	return nil
}

// Wait bounds the waiting for an item that others hold or write.
type Wait struct {
	Min time.Duration // least bound of the random sleep between tries; default 5 ms, of optimistic changes 10 ms
	Max time.Duration // greatest bound; default 500 ms, at most a year
	// Attempts is after how many tries a call gives up; default 0: as long as the
	// context allows. Standing behind callers of the same process is no try: that
	// the context alone bounds.
	Attempts int
}
