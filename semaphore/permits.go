package semaphore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
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
func (s *Semaphore) Permits(ctx context.Context, resource string) ([]PermitInfo, error) {
	r, err := s.read(ctx, resource)
	if err != nil {
		return nil, err
	}
	all := make([]PermitInfo, 0, len(r.Permits))
	for attr, held := range r.Permits {
		p := PermitInfo{ID: strings.TrimPrefix(attr, resources.PermitPrefix), Until: held.Until}
		p.Since, p.Owner = stored.ParseSign(held.Owner)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b PermitInfo) int { return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.ID, b.ID)) })
	return all, nil
}
