package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// A permit that was taken in a row that cannot be read was not given back.
func TestAPermitBesideWhatCannotBeRead(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Limit: 5})
	rig.Is(t, rig.Must(s.Acquire(t.Context(), "printer"))(t).Release(t.Context()))
	key := editResource(t, b, func(row map[string]types.AttributeValue) {
		row["p_byhand"] = &types.AttributeValueMemberS{Value: "x"}
	})
	for range 3 {
		_, err := s.TryAcquire(t.Context(), "printer")
		rig.Is(t, err, repo.ErrSchema)
	}
	if n := b.Item(t, key)["running"].(*types.AttributeValueMemberN).Value; n != "0" {
		t.Errorf("%s run, want none", n)
	}
}

// Nor was one that was passed on in such a row.
func TestAPermitThatIsPassedOnBesideWhatCannotBeRead(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		editResource(t, other.bench, func(row map[string]types.AttributeValue) { row["p_byhand"] = str("x") })
		rig.Is(t, first.Release(t.Context()))
		rig.Is(t, (<-second).err, repo.ErrSchema)
		editResource(t, other.bench, func(row map[string]types.AttributeValue) { delete(row, "p_byhand") })
		wantNone(t, p.s)
	})
}

// A dead permit whose end has more digits than ours kept TryAcquire busy for
// ever.
func TestAPermitWhoseEndWasWrittenByHand(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	p := rig.Must(s.Acquire(t.Context(), "printer"))(t)
	editResource(t, b, func(row map[string]types.AttributeValue) {
		for name := range row {
			if strings.HasPrefix(name, "p_") {
				row[name] = &types.AttributeValueMemberN{Value: "1700000000.1234567"}
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	other := rig.Must(b.open(t, semaphore.Config{}).TryAcquire(ctx, "printer"))(t)
	rig.Is(t, other.Release(t.Context()))
	rig.Is(t, p.Release(t.Context()), repo.ErrLockLost)
}
