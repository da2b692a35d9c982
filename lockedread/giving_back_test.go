package lockedread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// A caller who leaves while nothing answers any more is told what is true of its change, once
// that and the lock have had their time: that the lock could not be given back is no verdict
// where nothing was to be written.
func TestNothingAnswersWhoGivesALockBack(t *testing.T) {
	type end struct {
		change func(s *stock) error
		want   error
		within time.Duration
	}
	remove := func(*stock) error { return repo.Remove }
	for name, c := range map[string]end{
		"the item does not fit": {remove, repo.ErrSchema, ddb.Cleanup},
		"a change that fails":   {func(*stock) error { return errNo }, errNo, ddb.Cleanup},
		"a new item":            {remove, nil, ddb.Cleanup},
		"a change":              {func(s *stock) error { s.Count++; return nil }, repo.ErrOutcomeUnknown, 2 * ddb.Cleanup},
		"a deletion":            {remove, repo.ErrOutcomeUnknown, 2 * ddb.Cleanup},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			which := key
			if name == "a new item" {
				which.Partition = "pear"
			}
			if name == "the item does not fit" {
				b.put(t, map[string]types.AttributeValue{"count": &types.AttributeValueMemberS{Value: "many"}})
			}
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				silent := false
				var left time.Time
				l := b.over(t, &rig.Mortal{Next: network, Lost: func(string, string) (before, after bool) {
					if silent && ctx.Err() == nil {
						left = time.Now()
						cancel()
					}
					before = silent
					silent = silent || name == "the item does not fit"
					return before, false
				}}, lockedread.Config{Lease: time.Hour})
				_, err := l.Upsert(ctx, which, func(_ context.Context, s *stock) error { silent = true; return c.change(s) })
				if took := time.Since(left); took > c.within {
					t.Errorf("it took %v", took)
				}
				if !errors.Is(err, c.want) || !errors.Is(c.want, repo.ErrOutcomeUnknown) && errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

var errNo = errors.New("no")
