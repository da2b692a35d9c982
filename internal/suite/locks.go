package suite

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// Hold is one hold of a lock, of whatever kind.
type Hold struct {
	Token   int64
	Context context.Context // ends with the hold
	Release func(context.Context) error
}

// Locker is a program with one kind of lock, for one name.
type Locker struct {
	Lock func(context.Context) (*Hold, error)
	Try  func(context.Context) (*Hold, error)
}

// Lock is a row of a suite's table: one kind of lock.
type Lock struct {
	Name    string
	Endless bool // a dead holder's lock stays until it is broken
	// Open is a program with this lease.
	Open func(t testing.TB, f *Fixture, client *dynamodb.Client, lease time.Duration) Locker
	// Row is the key of the item that keeps the lock, nil where it may not be
	// deleted: an item that is gone cannot be locked, and permits share theirs
	// with the counters of jobs.
	Row map[string]types.AttributeValue
}

const skew = time.Millisecond

func holdOf[L any](wrap func(L) *Hold, lock func(context.Context) (L, error)) func(context.Context) (*Hold, error) {
	return func(ctx context.Context) (*Hold, error) {
		l, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(l), nil
	}
}

func named(mode mutex.Mode) func(t testing.TB, f *Fixture, client *dynamodb.Client, lease time.Duration) Locker {
	return func(t testing.TB, f *Fixture, client *dynamodb.Client, lease time.Duration) Locker {
		cfg := mutex.Config{Mode: mode, ClockSkew: skew}
		if mode == mutex.FailOpen {
			cfg.Lease, cfg.Heartbeat = lease, lease/3
		}
		l := rig.Must(mutex.New(client, f.Table, cfg))(t)
		wrap := func(l *mutex.Lock) *Hold { return &Hold{l.Token(), l.Context(), l.Unlock} }
		return Locker{
			Lock: holdOf(wrap, func(ctx context.Context) (*mutex.Lock, error) { return l.Lock(ctx, "x") }),
			Try:  holdOf(wrap, func(ctx context.Context) (*mutex.Lock, error) { return l.TryLock(ctx, "x") }),
		}
	}
}

func textKey(name, value string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{name: &types.AttributeValueMemberS{Value: value}}
}

// locked is the item of the row "item lock".
type locked struct {
	Name string `dynamodbav:"name" repo:"pk"`
}

// Locks are all kinds of lock.
func Locks() []Lock {
	return []Lock{
		{"item lock", false, func(t testing.TB, f *Fixture, client *dynamodb.Client, lease time.Duration) Locker {
			table := rig.Must(repo.NewTable[locked](client, f.Table, repo.TableConfig{}))(t)
			l := rig.Must(lockedread.New(table, lockedread.Config{Lease: lease, Renew: true, ClockSkew: skew}))(t)
			key := repo.Key{Partition: "x"}
			wrap := func(h *lockedread.Held[locked]) *Hold { return &Hold{h.Token(), h.Context(), h.Release} }
			return Locker{
				Lock: holdOf(wrap, func(ctx context.Context) (*lockedread.Held[locked], error) { return l.Acquire(ctx, key) }),
				Try:  holdOf(wrap, func(ctx context.Context) (*lockedread.Held[locked], error) { return l.TryAcquire(ctx, key) }),
			}
		}, nil},
		{"mutex, fail-open", false, named(mutex.FailOpen), textKey("name", "x")},
		{"mutex, fail-closed", true, named(mutex.FailClosed), textKey("name", "x")},
		{"ticket", false, func(t testing.TB, f *Fixture, client *dynamodb.Client, lease time.Duration) Locker {
			q := rig.Must(ticket.New(client, f.Table, ticket.Config{Lease: lease, ClockSkew: skew}))(t)
			wrap := func(turn *ticket.Turn) *Hold { return &Hold{turn.Number(), turn.Context(), turn.Done} }
			return Locker{
				Lock: holdOf(wrap, func(ctx context.Context) (*ticket.Turn, error) { return q.Lock(ctx, "x") }),
				Try:  holdOf(wrap, func(ctx context.Context) (*ticket.Turn, error) { return q.TryLock(ctx, "x") }),
			}
		}, textKey("queue", "/x")},
		{"permit, limit 1", false, func(t testing.TB, f *Fixture, client *dynamodb.Client, lease time.Duration) Locker {
			s := rig.Must(semaphore.New[int](client, f.Table, semaphore.Config{Lease: lease, ClockSkew: skew}))(t)
			wrap := func(p *semaphore.Permit) *Hold { return &Hold{p.Token(), p.Context(), p.Release} }
			return Locker{
				Lock: holdOf(wrap, func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, "x") }),
				Try:  holdOf(wrap, func(ctx context.Context) (*semaphore.Permit, error) { return s.TryAcquire(ctx, "x") }),
			}
		}, nil},
	}
}

// NewForLock makes the table of one kind of lock.
func NewForLock(t testing.TB, name string) *Fixture {
	t.Helper()
	f := Empty(t)
	ctx := t.Context()
	var err error
	switch name {
	case "item lock":
		table := rig.Must(repo.NewTable[locked](f.Client, f.Table, repo.TableConfig{}))(t)
		if err = table.EnsureTable(ctx); err == nil {
			_, err = f.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &f.Table, Item: textKey("name", "x")})
		}
	case "ticket":
		err = rig.Must(ticket.New(f.Client, f.Table, ticket.Config{}))(t).EnsureTable(ctx)
	case "permit, limit 1":
		err = rig.Must(semaphore.New[int](f.Client, f.Table, semaphore.Config{}))(t).EnsureTable(ctx)
	default:
		err = rig.Must(mutex.New(f.Client, f.Table, mutex.Config{}))(t).EnsureTable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Count.Reset()
	return f
}

// EachLock runs a test of every kind of lock, each on a table of its own.
func EachLock(t *testing.T, run func(t *testing.T, f *Fixture, l Lock)) {
	t.Helper()
	for _, l := range Locks() {
		t.Run(l.Name, func(t *testing.T) { run(t, NewForLock(t, l.Name), l) })
	}
}
