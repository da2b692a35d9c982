package lock

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// Numbers that nobody who follows the protocol writes let nobody in, and stay.
func TestNumbersThatLetNobodyIn(t *testing.T) {
	for _, fair := range []bool{false, true} {
		p := open(t, Config{Fair: fair})
		for _, name := range []string{p.Core.Attr.LockTime, p.Core.Attr.LockLease, p.Core.Attr.LockHeld, p.Core.Attr.LockToken, p.Core.Attr.LockStolen} {
			for _, n := range []string{"-1", "4611686018427387905"} {
				foreign := ddb.Item{"id": raw["id"], "count": ddb.Integer(1), name: ddb.Number(n)}
				p.put(t, foreign)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				_, _, err := p.Acquire(ctx, key, raw, Request{Try: true})
				cancel()
				rig.Is(t, err, repo.ErrSchema)
				if now := p.Item(t, raw); !ddb.EqualItems(foreign, now) {
					t.Errorf("%s = %s, fair %v: %v has become %v", name, n, fair, foreign, now)
				}
			}
		}
	}
}
