package delegate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// marked is a list with a value that no other has.
type marked struct {
	Shop    string   `dynamodbav:"shop" repo:"pk"`
	ID      string   `dynamodbav:"id" repo:"sk"`
	Mark    string   `dynamodbav:"mark,omitempty" repo:"unique"`
	Ops     []string `dynamodbav:"ops"`
	Version int64    `dynamodbav:"version" repo:"version"`
}

// sleepy is a client behind whose transactions, and before whose readings, a process stands
// still now and then: leaders are overtaken.
type sleepy struct{ *dynamodb.Client }

func (s sleepy) sleeps() {
	if rand.IntN(10) == 0 {
		time.Sleep(time.Second)
	}
}

func (s sleepy) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	defer s.sleeps()
	return s.Client.TransactWriteItems(ctx, in, o...)
}

func (s sleepy) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	s.sleeps()
	return s.Client.GetItem(ctx, in, o...)
}

// Commands that change a unique value are written by a transaction, with the evidence of
// those that were carried out. One whose value is another item's is refused alone.
func TestCommandsChangeAUniqueValue(t *testing.T) {
	t.Parallel()
	b := rig.New(t)
	opened := func(client repo.Client) *optimistic.Repository[marked] {
		return rig.Must(optimistic.New(rig.Must(repo.NewTable[marked](client, b.Table, repo.TableConfig{}))(t), optimistic.Config{}))(t)
	}
	lists := opened(b.Client)
	rig.Is(t, lists.Table().EnsureTable(t.Context()))
	rig.Must(lists.Create(t.Context(), marked{Shop: "s", ID: "list"}))(t)
	rig.Must(lists.Create(t.Context(), marked{Shop: "s", ID: "other", Mark: "taken"}))(t)
	seen := newAudit()
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		client := rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond}))
		var all sync.WaitGroup
		for n := range 4 {
			commands := rig.Must(delegate.New(opened(sleepy{client}), delegate.Config{}))(t)
			mark := rig.Must(delegate.Command(commands, "mark/v1", func(_ context.Context, l *marked, op string) (int, error) {
				switch op[len(op)-1] % 5 {
				case 0:
					l.Mark = op
				case 1:
					l.Mark = "taken"
				}
				l.Ops = append(l.Ops, op)
				return len(l.Ops), nil
			}))(t)
			for c := range 2 {
				all.Go(func() {
					for i := range 10 {
						op := fmt.Sprintf("%d-%d-%d", n, c, i)
						_, err := mark.Do(context.Background(), key, op)
						if errors.Is(err, repo.ErrNotUnique) && i%5 != 3 {
							t.Errorf("%s: %v", op, err)
						}
						seen.record(op, err)
					}
				})
			}
			defer func() { rig.Is(t, commands.Close(context.Background())) }()
		}
		all.Wait()
	})
	seen.check(t, rig.Must(lists.Get(t.Context(), key))(t).Ops)
}
