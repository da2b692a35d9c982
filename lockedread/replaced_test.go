package lockedread_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// A program that puts whole items wipes a lock away. Its holder is told that,
// not that an answer was lost, and never that its commit was applied.
func TestACommitOnAnItemThatWasReplaced(t *testing.T) {
	lockAttributes := func(item map[string]types.AttributeValue) map[string]types.AttributeValue {
		kept := map[string]types.AttributeValue{}
		for name, v := range item {
			if strings.HasPrefix(name, "lock") {
				kept[name] = v
			}
		}
		return kept
	}
	for name, kept := range map[string]func(before map[string]types.AttributeValue) map[string]types.AttributeValue{
		"by one without our attributes":  func(map[string]types.AttributeValue) map[string]types.AttributeValue { return nil },
		"by one read before it was held": lockAttributes,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			l := b.locker(t, lockedread.Config{})
			rig.Is(t, acquire(t, l).Release(t.Context())) // the item has been locked before
			before := b.raw(t)
			held := acquire(t, l)
			b.put(t, kept(before))
			item := held.Item()
			item.Count++
			_, err := held.Commit(t.Context(), item)
			rig.Is(t, err, repo.ErrOutcomeUnknown)
			if err != nil && (strings.Contains(err.Error(), "answer") || !strings.Contains(err.Error(), "does not follow the protocol")) {
				t.Errorf("error %v", err)
			}
			if err := held.Release(t.Context()); err != nil && !errors.Is(err, repo.ErrOutcomeUnknown) && !errors.Is(err, repo.ErrLockLost) {
				t.Error(err)
			}
		})
	}
}

// A commit that changes nothing is applied whatever became of its answers, and of the lock.
// Who waits for that in this process takes it anew.
func TestACommitOfNothingIsNeverUnknown(t *testing.T) {
	for _, waits := range []bool{false, true} {
		b := newBench(t)
		inVirtualTime(t, func(t *testing.T, network fault.Doer) {
			others := b.over(t, network, lockedread.Config{})
			var held *lockedread.Held[stock]
			l := b.over(t, fault.New(network, fault.Config{Script: func(_ string, n int, _ []byte) fault.Kind {
				switch {
				case n == 1:
					return fault.LoseResponse
				case n == 2 && waits: // the lock that was kept for it
					rig.Is(t, others.Break(t.Context(), key, held.Token()+1))
				case n == 2: // a later one
					rig.Is(t, others.Break(t.Context(), key, acquire(t, others).Token()))
				}
				return fault.None
			}}), lockedread.Config{})
			held = rig.Must(l.Acquire(t.Context(), key))(t)
			if waits {
				go func() {
					_, err := l.Update(t.Context(), key, addOne)
					rig.Is(t, err)
				}()
				synctest.Wait()
			}
			_, err := held.Commit(t.Context(), held.Item())
			rig.Is(t, err)
			rig.Is(t, held.Release(t.Context()))
			time.Sleep(time.Minute) // in virtual time: who waited is done
		})
	}
}
