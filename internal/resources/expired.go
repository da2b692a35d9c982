package resources

import (
	"context"
	"log/slog"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
)

const (
	// maxRemoved keeps the expression of a removal within DynamoDB's limit.
	maxRemoved = 30
	// maxKept is up to how many names the evidence of earlier removals is kept: every
	// request on the row bills it.
	maxKept = 10
)

// RemoveExpired removes the permits whose holders are dead, and leaves their
// names as the evidence of it. It reports whether it sent anything: the resource
// is then worth another look.
func (t *Table) RemoveExpired(ctx context.Context, r Row) (bool, error) {
	w, removed := t.Core.NewWrite(), []string(nil)
	for attr, p := range r.Permits {
		if t.Dead(p.Until, t.Clock()) && len(removed) < maxRemoved {
			w.Remove(attr)
			if p.Owner != nil {
				w.Remove(OwnerAttr(attr))
			}
			w.IfEqual(attr, p.End)
			removed = append(removed, attr)
		}
	}
	if len(removed) == 0 {
		return false, nil
	}
	w.Set(aRemoved, &types.AttributeValueMemberSS{Value: withEarlier(removed, r.removed)})
	count(w, aRunning, -int64(len(removed)))
	count(w, aChanges, 1)
	// Whether we removed them or the resource changed meanwhile: a read tells.
	res := t.Write(ctx, r.Name, w, ddb.Options{NoGrace: true})
	switch res.Outcome {
	case ddb.Refused:
		return false, res.Err
	case ddb.Applied:
		t.Core.Observe.TakenOver(ctx, telemetry.Permit, len(removed), slog.String("resource", r.Name), slog.Int("permits", len(removed)))
	}
	return true, nil
}

// withEarlier adds the evidence of earlier removals to that of this one, while it is
// little: holders who died together are often found one by one.
func withEarlier(removed, earlier []string) []string {
	if len(removed)+len(earlier) > maxKept {
		return removed
	}
	all := slices.Concat(removed, earlier)
	slices.Sort(all) // a late copy of a try can have brought one back
	return slices.Compact(all)
}

// removedIn is whose permits a resource's row says were removed as those of dead holders.
func removedIn(row ddb.Item) []string {
	if removed, ok := row[aRemoved].(*types.AttributeValueMemberSS); ok {
		return removed.Value
	}
	return nil
}

// Removed reports whether a resource's row says that a permit was removed as that of a
// dead holder.
func Removed(row ddb.Item, attr string) bool { return slices.Contains(removedIn(row), attr) }
