package unlocked

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

var (
	key = repo.Key{Partition: "beans"}
	raw = ddb.Item{"id": ddb.Text("beans")}
)

// process writes an item, and has a locker that holds it.
type process struct {
	*rig.Rig
	core   *protocol.Core
	locker *lock.Locker
	ahead  time.Duration // of its clock
}

// open makes a table with one item, and a process.
func open(t *testing.T) *process {
	t.Helper()
	p := &process{Rig: rig.New(t)}
	type tin struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	table := rig.Must(repo.NewTable[tin](p.Client, p.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	rig.Must(rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &p.Table, Item: raw}))(t)
	p.core = protocol.Of(link.Table(table.KeyTable))
	p.locker = lock.NewLocker(p.core, lock.Config{Owner: "me", Lease: time.Hour, Skew: time.Second, Wait: repo.Wait{Min: time.Millisecond, Max: 5 * time.Millisecond},
		Clock: func() time.Time { return time.Now().Add(p.ahead) }})
	return p
}

// record is what stands on the item.
func (p *process) record(t *testing.T) (stored.Record, ddb.Item) {
	t.Helper()
	item := p.Item(t, raw)
	return rig.Must(p.core.ParseRecord(item))(t), item
}

func (p *process) call() *Call {
	return &Call{Waiter: lock.Waiter{Core: p.core, Key: key, Raw: raw, Settings: lock.Settings{Wait: p.locker.Wait, Skew: p.locker.Skew, Clock: p.locker.Clock}}}
}

// A context may be that of another lock, and end with its loss or its release. Of a call in doubt that
// says why nobody looked any further, and not that nothing was written.
func TestTheEndOfAnotherLockIsNoVerdict(t *testing.T) {
	p := open(t)
	for _, end := range []error{repo.ErrLockLost, repo.ErrLockExpired, repo.ErrReleased, repo.ErrNotHeld} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := p.call()
		err := w.Do(ctx, func() error {
			w.Doubt.Sent(false)
			cancel(end)
			return lock.UnknownOutcome(p.core.Table, key, nil)
		})
		rig.Is(t, err, repo.ErrOutcomeUnknown, context.Canceled)
		if errors.Is(err, end) {
			t.Errorf("%v says that nothing was written", err)
		}
	}
}
