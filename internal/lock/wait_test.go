package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

func text(s string) types.AttributeValue       { return ddb.Text(s) }
func number(at time.Time) types.AttributeValue { return ddb.Number(ddb.Seconds(at)) }

// A write without a verdict makes no claim that nothing was written, in whatever
// way its reason is asked for.
func TestUnknownOutcomeClaimsNothing(t *testing.T) {
	for _, why := range unwritten {
		if err := UnknownOutcome(core.Table, key, why); !errors.Is(err, repo.ErrOutcomeUnknown) || errors.Is(err, why) {
			t.Errorf("%v", err)
		}
	}
	locked := UnknownOutcome(core.Table, key, Locked(core, key, stored.Record{By: "joe"}))
	if e := new(repo.LockedError); errors.As(locked, &e) {
		t.Errorf("%v", locked)
	}
	rig.Is(t, UnknownOutcome(core.Table, key, context.Canceled), context.Canceled)
	if err := Unwritten(core.Table, key, locked); errors.Is(err, repo.ErrOutcomeUnknown) || !errors.Is(err, repo.ErrLocked) {
		t.Errorf("%v", err)
	}
}

// core is of a table that is never asked.
var core = protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "shelf"}}))
