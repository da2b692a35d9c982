package ddb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// However many layers give something back, one in the other, they have
// ddb.Cleanup together, from when the caller left.
func TestWhatIsGivenBackHasOneTime(t *testing.T) {
	for name, layers := range map[string][]func(context.Context) (context.Context, context.CancelFunc){
		"one":              {ddb.Cleaning},
		"in each other":    {ddb.Cleaning, ddb.Cleaning, ddb.DetachedTimeout},
		"detached":         {ddb.DetachedTimeout},
		"under a detached": {ddb.DetachedTimeout, ddb.Cleaning, ddb.DetachedTimeout},
	} {
		for _, left := range []time.Duration{0, time.Second} { // until the caller leaves
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				want := left + ddb.Cleanup
				if name != "one" && name != "in each other" { // whoever detaches has been left
					want = ddb.Cleanup
				}
				began := time.Now()
				for _, layer := range layers {
					time.Sleep(100 * time.Millisecond)
					inner, cancel := layer(ctx)
					defer cancel()
					ctx = inner
				}
				<-ctx.Done()
				if took := time.Since(began); took > want+100*time.Millisecond {
					t.Errorf("%s: %v, want %v", name, took, want)
				}
			})
		}
	}
}

// Why a caller has left is said, and is not taken for a verdict on what is given back.
func TestTheCauseIsNoVerdictOnWhatIsGivenBack(t *testing.T) {
	for _, left := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := ddb.Cleaning(callerWhoLeaves(t, left))
			defer end()
			<-ctx.Done()
			cause := context.Cause(ctx)
			if !errors.Is(cause, context.Canceled) || errors.Is(cause, errLeft) || !strings.Contains(cause.Error(), errLeft.Error()) {
				t.Errorf("left after %v: cause %v", left, cause)
			}
		})
	}
}
