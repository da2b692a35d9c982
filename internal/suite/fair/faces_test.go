package fair_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// program waits for its turn, and runs inside while it has it. The token is 0 where the
// face has none.
type program func(ctx context.Context, inside func(token int64)) error

// face is a row of the suite's table: a way to wait in turn.
type face struct {
	name string
	make func(t *testing.T) *fixture.Fixture
	open func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program
	row  func(t *testing.T, f *fixture.Fixture) map[string]types.AttributeValue
	// joins says that it stands in a queue that is there, and begins none: it holds no
	// lock. Holder and first waiter are those of the item lock then.
	joins bool
	// dead is for how long one who died keeps the others waiting, lost the same of one lost
	// message, writes how many of them a turn takes, of the last one's end on.
	// Where enters is set its first request is no enqueue that is watched.
	dead, lost time.Duration
	enters     bool
	writes     int
	endless    bool // the row goes with the lock, and its tokens with the row
}

const (
	grace   = time.Second      // of a lock that is handed over: what does not confirm has lost it
	timeout = 10 * time.Second // of an attempt of a request
	name    = "x"
)

func faces() []face {
	lost := 3*grace + 100*time.Millisecond // an enqueue is waited for for two graces
	item := face{make: newAccount, row: account, dead: 3 * grace / 2, lost: lost, writes: 2}
	row := func(name string, open func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program) face {
		f := item
		f.name, f.open = name, open
		return f
	}
	joins := func(f face) face {
		f.joins, f.enters, f.writes = true, true, 3
		return f
	}
	return []face{
		row("item lock", byHandle),
		row("pessimistic", func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
			return byChange(rig.Must(pessimistic.New(f.Items(t, client), pessimistic.Config{}))(t))
		}),
		row("transaction", inTransaction),
		joins(row("optimistic", func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
			return byChange(rig.Must(optimistic.New(f.Items(t, client), optimistic.Config{Fair: true}))(t))
		})),
		joins(row("nolock", func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
			return byChange(rig.Must(nolock.New(f.Items(t, client), nolock.Config{}))(t))
		})),
		{name: "mutex, fail-open", make: lockRow("mutex"), open: named(mutex.FailOpen), row: keyed("name", name), dead: 3 * grace / 2, lost: lost, writes: 2},
		{name: "mutex, fail-closed", make: lockRow("mutex"), open: named(mutex.FailClosed), row: keyed("name", name), dead: 3 * grace / 2, lost: lost, writes: 3, endless: true},
		{name: "ticket", make: lockRow("ticket"), open: byTicket, row: keyed("queue", "/"+name), dead: ticketLease + ticketLease/6, lost: lost, enters: true, writes: 2},
	}
}

// each runs a test of every face.
func each(t *testing.T, run func(t *testing.T, f *fixture.Fixture, c face)) {
	t.Helper()
	for _, c := range faces() {
		t.Run(c.name, func(t *testing.T) { run(t, c.make(t), c) })
	}
}

// program is the nth program of a test, of which the first one holds.
func (c face) program(t *testing.T, f *fixture.Fixture, client *dynamodb.Client, nth int) program {
	if c.joins && nth < 2 {
		return byHandle(t, f, client)
	}
	return c.open(t, f, client)
}

func newAccount(t *testing.T) *fixture.Fixture {
	f, _ := fixture.NewWith(t, fixture.Key)
	f.Count.Reset()
	return f
}

func account(t *testing.T, f *fixture.Fixture) map[string]types.AttributeValue {
	return f.Raw(t, fixture.Key)
}

func lockRow(kind string) func(t *testing.T) *fixture.Fixture {
	return func(t *testing.T) *fixture.Fixture { return fixture.NewForLock(t, kind) }
}

func keyed(attr, value string) func(t *testing.T, f *fixture.Fixture) map[string]types.AttributeValue {
	return func(t *testing.T, f *fixture.Fixture) map[string]types.AttributeValue {
		return f.Item(t, map[string]types.AttributeValue{attr: &types.AttributeValueMemberS{Value: value}})
	}
}

func byHandle(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
	l := f.Locker(t, client, lockedread.Config{})
	return func(ctx context.Context, inside func(int64)) error {
		h, err := l.Acquire(ctx, fixture.Key)
		if err != nil {
			return err
		}
		inside(h.Token())
		return h.Release(ctx)
	}
}

func byChange(r repo.Repository[fixture.Account]) program {
	return func(ctx context.Context, inside func(int64)) error {
		_, err := r.Update(ctx, fixture.Key, func(_ context.Context, a *fixture.Account) error {
			a.Balance++
			inside(0)
			return nil
		})
		return err
	}
}

func inTransaction(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
	r := rig.Must(pessimistic.New(f.Items(t, client), pessimistic.Config{}))(t)
	return func(ctx context.Context, inside func(int64)) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			return byChange(r.In(tx))(ctx, inside)
		})
	}
}

func named(mode mutex.Mode) func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
	return func(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
		l := rig.Must(mutex.New(client, f.Table, mutex.Config{Mode: mode}))(t)
		return func(ctx context.Context, inside func(int64)) error {
			return l.Do(ctx, name, func(_ context.Context, lock *mutex.Lock) error { inside(lock.Token()); return nil })
		}
	}
}

// ticketLease keeps those who wait: who died is passed over when it ends, and who is next
// looks after an eighth of the time for which it has been next.
const ticketLease = 30 * time.Second

func byTicket(t *testing.T, f *fixture.Fixture, client *dynamodb.Client) program {
	q := rig.Must(ticket.New(client, f.Table, ticket.Config{Lease: ticketLease}))(t)
	return func(ctx context.Context, inside func(int64)) error {
		return q.Do(ctx, name, func(_ context.Context, turn *ticket.Turn) error { inside(turn.Number()); return nil })
	}
}

// standing is how many stand in the queue on a row, the holder's own entry among them
// where it has one.
func standing(row map[string]types.AttributeValue) (n int) {
	for attr := range row {
		if strings.HasPrefix(attr, "w_") {
			n++
		}
	}
	if list, ok := row["lockQueue"].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			if _, entry := v.(*types.AttributeValueMemberB); entry {
				n++
			}
		}
	}
	return n
}
