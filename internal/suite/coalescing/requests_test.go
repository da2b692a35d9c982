package coalescing_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/suite"
)

// What one change costs when many want the item, by request.
func TestRequestsOfAHotItem(t *testing.T) {
	const callers, each = 32, 10
	for name, want := range map[string]float64{ // requests per change, at most
		"optimistic": 1.1, "pessimistic": 1.2, "optimistic, warm": 1.1,
		"pessimistic, combining": 0.9, "optimistic, warm, combining": 0.9,
	} {
		i := slices.IndexFunc(suite.Strategies(), func(s suite.Strategy) bool { return s.Name == name })
		s := suite.Strategies()[i]
		t.Run(name, func(t *testing.T) {
			w := suite.New(t)
			r := s.Open(t, w, w.Client)
			rig.Must(r.Create(t.Context(), suite.Account{ID: "hot", Seq: 1, At: 1}))(t)
			w.Count.Reset()
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					for range each {
						rig.Must(r.Update(t.Context(), suite.HotKey, func(_ context.Context, a *suite.Account) error { a.Balance++; a.At++; return nil }))(t)
					}
				})
			}
			done.Wait()
			if per := float64(w.Count.Total()) / (callers * each); per > want {
				t.Errorf("%.2f requests per change, want at most %.2f: %v", per, want, w.Count.Counts())
			}
			if got := rig.Must(r.Get(t.Context(), suite.HotKey))(t); got.Balance != callers*each {
				t.Errorf("balance %d, want %d", got.Balance, callers*each)
			}
		})
	}
}
