package lockedread_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
