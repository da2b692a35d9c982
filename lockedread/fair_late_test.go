package lockedread_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// Waiters who learn late that the lock was transferred to them, in virtual time.

// slowly is a client to which the news of a transfer comes late.
func slowly(network fault.Doer, by time.Duration) *rig.Intercept {
	return &rig.Intercept{
		Client: rig.Client(rig.Over(network)),
		Read: func(item map[string]types.AttributeValue) {
			if id, ok := item["lockedBy"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(id.Value, "next#") {
				time.Sleep(by)
			}
		},
	}
}

func (b bench) lockerOf(t *testing.T, client repo.Client, cfg lockedread.Config) *lockedread.Locker[stock] {
	t.Helper()
	return rig.Must(lockedread.New(rig.Must(repo.NewTable[stock](client, b.Table, repo.TableConfig{}))(t), cfg))(t)
}

// behind calls while somebody holds the item with Fair, and returns what the
// call returned after the holder had released it to the one who waits.
func (b bench) behind(t *testing.T, network fault.Doer, cfg lockedread.Config, call func() error) error {
	t.Helper()
	held := acquire(t, b.over(t, network, cfg))
	told := make(chan error)
	go func() { told <- call() }()
	time.Sleep(100 * time.Millisecond) // in virtual time: it has an entry in the queue
	rig.Is(t, held.Release(t.Context()))
	return <-told
}

// A transfer that is learned of after the grace is not an expired lock: nobody
// else wanted the item.
func TestFairTransferLearnedOfLate(t *testing.T) {
	b := newBench(t)
	cfg := lockedread.Config{Fair: true} // a second of grace
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		second := b.lockerOf(t, slowly(network, 1200*time.Millisecond), cfg)
		rig.Is(t, b.behind(t, network, cfg, func() error {
			_, err := second.Update(t.Context(), key, addOne)
			return err
		}))
	})
	wantCount(t, b, 11)
	wantClean(t, b)
}

// A caller that leaves while the transfer to it is being confirmed is not told
// "unknown": its change has not even run.
func TestFairCallerThatLeavesBeforeItsChange(t *testing.T) {
	b := newBench(t)
	cfg := lockedread.Config{Fair: true}
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		ctx, leave := context.WithCancel(t.Context())
		confirmations, ran := 0, false
		client := slowly(network, 900*time.Millisecond) // most of the grace
		client.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			out, err := send()
			if strings.HasPrefix(*in.UpdateExpression, "SET #lockTime = :until, #lockLease = :lease") {
				confirmations++
				leave()
				return nil, rig.ErrNoAnswer
			}
			return out, err
		}
		second := b.lockerOf(t, client, cfg)
		err := b.behind(t, network, cfg, func() error {
			_, err := second.Update(ctx, key, func(context.Context, *stock) error { ran = true; return nil })
			return err
		})
		rig.Is(t, err, context.Canceled)
		if ran || confirmations == 0 || errors.Is(err, repo.ErrOutcomeUnknown) {
			t.Errorf("the change has run: %v, %d confirmations; told %v", ran, confirmations, err)
		}
	})
	wantCount(t, b, 10)
}

// Who is next in the queue looks often, but pauses between two looks, however fast
// the answers come: a network without latency, in virtual time, is the fastest.
func TestFairLooksPause(t *testing.T) {
	b := newBench(t)
	cfg := lockedread.Config{Fair: true}
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		const enough = 100
		ctx, leave := context.WithCancel(t.Context())
		looks := 0
		client := &rig.Intercept{
			Client: rig.Client(rig.Over(network)),
			Read: func(map[string]types.AttributeValue) {
				if looks++; looks > enough { // in a hot loop virtual time would stand still
					leave()
				}
			},
		}
		held := acquire(t, b.over(t, network, cfg))
		told := make(chan error)
		go func() {
			_, err := b.lockerOf(t, client, cfg).Update(ctx, key, addOne)
			told <- err
		}()
		time.Sleep(9 * time.Second) // of virtual time
		rig.Is(t, held.Release(t.Context()))
		rig.Is(t, <-told)
		if looks < 20 || looks > enough {
			t.Errorf("%d looks in nine seconds", looks)
		}
	})
	wantCount(t, b, 11)
}
