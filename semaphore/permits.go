package semaphore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// PermitInfo is what a resource tells of a permit.
type PermitInfo struct {
	ID    string    // as [Permit.ID]
	Owner string    // who took it; "" without Config.NamePermits
	Since time.Time // when, on the owner's clock, in seconds; zero without Config.NamePermits
	Until time.Time // when others may take it over, on the owner's clock
}

// Expired reports whether others may take it over, by a clock.
func (p PermitInfo) Expired(now time.Time) bool { return p.Until.Before(now) }

// Permits lists the permits of a resource that are held, or were held and not given
// back, those that end first first. One request, one read unit per 4 KB.
func (s *store) Permits(ctx context.Context, resource string) ([]PermitInfo, error) {
	r, err := s.Resource(ctx, resource)
	if err != nil {
		return nil, err
	}
	all := make([]PermitInfo, 0, len(r.permits))
	for attr, end := range r.permits {
		p := PermitInfo{ID: strings.TrimPrefix(attr, permitPrefix), Until: end.until}
		p.Since, p.Owner = parseOwner(end.owner)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b PermitInfo) int {
		if c := a.Until.Compare(b.Until); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, nil
}

// ownerAttr is the attribute that says who took a permit.
func ownerAttr(permit string) string { return ownerPrefix + strings.TrimPrefix(permit, permitPrefix) }

// ownerText is what it says.
func ownerText(now time.Time, owner string) types.AttributeValue {
	return ddb.Text(strconv.FormatInt(now.Unix(), 10) + " " + owner)
}

// parseOwner reads it. Nothing depends on it, so what cannot be read says nothing.
func parseOwner(v types.AttributeValue) (since time.Time, owner string) {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return since, ""
	}
	at, owner, _ := strings.Cut(s.Value, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || seconds <= 0 || seconds >= ddb.Never().Unix() {
		return since, ""
	}
	return time.Unix(seconds, 0), owner
}
