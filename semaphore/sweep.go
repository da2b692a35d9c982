package semaphore

import (
	"context"
	"log/slog"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// removeExpired removes the permits whose holders are dead, and leaves their
// names as the evidence of it. It reports whether it sent anything: the resource
// is then worth another look.
func (s *store) removeExpired(ctx context.Context, r Resource) (bool, error) {
	w, removed := s.core.NewWrite(), []string(nil)
	for attr, end := range r.permits {
		if end.until.Add(s.cfg.ClockSkew).Before(s.clock()) && len(removed) < maxSweep {
			w.Remove(attr)
			if end.owner != nil {
				w.Remove(ownerAttr(attr))
			}
			w.IfEqual(attr, end.raw)
			removed = append(removed, attr)
		}
	}
	if len(removed) == 0 {
		return false, nil
	}
	w.Set(aSwept, &types.AttributeValueMemberSS{Value: withEarlier(removed, r.swept)})
	count(w, aRunning, -int64(len(removed)))
	count(w, aChanges, 1)
	// Whether we removed them or the resource changed meanwhile: a look tells.
	res := s.write(ctx, r.Name, w, ddb.Options{NoGrace: true})
	switch res.Outcome {
	case ddb.Refused:
		return false, res.Err
	case ddb.Applied:
		s.core.Observe.TakenOver(ctx, telemetry.Permit, len(removed), slog.String("resource", r.Name), slog.Int("permits", len(removed)))
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

// sweptIn is whose permits a resource's row says were removed as those of dead holders.
func sweptIn(row ddb.Item) []string {
	if swept, ok := row[aSwept].(*types.AttributeValueMemberSS); ok {
		return swept.Value
	}
	return nil
}

const (
	// maxSweep keeps the expression of a sweep within DynamoDB's limit.
	maxSweep = 30
	// maxKept is up to how many names the evidence of earlier removals is kept: every
	// request on the row bills it.
	maxKept = 10
)
