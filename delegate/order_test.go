package delegate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// posts is a client that looks at each mail before it is put, and whose writes of the item
// take a second now and then: leaders are overtaken.
type posts struct {
	*dynamodb.Client
	t      *testing.T
	random *rand.Rand
	check  func(slot string, seq int64)

	mu sync.Mutex
}

func (p *posts) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	slot := in.Key["id"].(*types.AttributeValueMemberS).Value
	mail := false
	for _, name := range in.ExpressionAttributeNames {
		mail = mail || name == "mailOrders"
	}
	seq, isPost := in.ExpressionAttributeValues[":v0"].(*types.AttributeValueMemberN)
	p.mu.Lock()
	stalls := p.random.IntN(20) == 0
	p.mu.Unlock()
	switch {
	case mail && isPost && len(in.ExpressionAttributeValues) > 4: // an answer has fewer
		var n int64
		if _, err := fmt.Sscan(seq.Value, &n); err != nil {
			p.t.Error(err)
		}
		p.check(slot, n)
	case !mail && stalls:
		time.Sleep(time.Second)
	}
	return p.Client.UpdateItem(ctx, in, o...)
}

// A second mail of a slot would cover the first, of which nobody could say then whether it
// was served: before each mail is put, the item or the row says what became of the last.
func TestASenderHasOneMailAtATime(t *testing.T) {
	t.Parallel()
	b, first := withList(t)
	seen := newAudit()
	var mu sync.Mutex
	last, mails := map[string]int64{}, 0
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		client := rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond}))
		look := rig.Must(repo.NewTable[list](client, b.Table, repo.TableConfig{}))(t)
		decided := func(slot string, seq int64) bool {
			raw := rig.Must(client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &b.Table, Key: rig.Must(look.EncodeKey(key))(t)}))(t)
			return rig.Must(delegation.Of(link.Table(look.KeyTable), raw.Item))(t).Slots[slot].Seq >= seq
		}
		check := func(slot string, seq int64) {
			mu.Lock()
			before := last[slot]
			last[slot] = max(before, seq)
			mails++
			mu.Unlock()
			if before > 0 && before < seq && !decided(slot, before) {
				t.Errorf("mail %d of %s is put before %d is decided", seq, slot, before)
			}
		}
		var all sync.WaitGroup
		for n := range 6 {
			p := &posts{Client: client, t: t, random: rand.New(rand.NewPCG(uint64(n), 1)), check: check}
			table := rig.Must(repo.NewTable[list](p, b.Table, repo.TableConfig{}))(t)
			items := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
			commands := rig.Must(delegate.New(items, delegate.Config{}))(t)
			add := rig.Must(delegate.Command(commands, "add/v1", func(_ context.Context, l *list, op string) (int, error) {
				l.Ops = append(l.Ops, op)
				return len(l.Ops), nil
			}))(t)
			all.Go(func() {
				for i := range 15 {
					op := fmt.Sprintf("%d-%d", n, i)
					_, err := add.Do(context.Background(), key, op)
					seen.record(op, err)
				}
				rig.Is(t, commands.Close(context.Background()))
			})
		}
		all.Wait()
	})
	seen.check(t, rig.Must(first.items.Get(t.Context(), key))(t).Ops)
	if mails < 20 {
		t.Errorf("only %d mails were put", mails)
	}
}
