package coalescing_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
)

// What one change costs when many want the item, by request.
func TestRequestsOfAHotItem(t *testing.T) {
	const callers, each = 32, 10
	for name, want := range map[string]float64{ // requests per change, at most
		"optimistic": 1.1, "pessimistic": 1.2, "optimistic, warm": 1.1,
		"pessimistic, combining": 0.9, "optimistic, warm, combining": 0.9,
	} {
		i := slices.IndexFunc(fixture.Strategies(), func(s fixture.Strategy) bool { return s.Name == name })
		s := fixture.Strategies()[i]
		t.Run(name, func(t *testing.T) {
			w := fixture.New(t)
			r := s.Open(t, w, w.Client)
			rig.Must(r.Create(t.Context(), fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
			w.Count.Reset()
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					for range each {
						rig.Must(r.Update(t.Context(), fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; a.At++; return nil }))(t)
					}
				})
			}
			done.Wait()
			if per := float64(w.Count.Total()) / (callers * each); per > want {
				t.Errorf("%.2f requests per change, want at most %.2f: %v", per, want, w.Count.Counts())
			}
			if got := rig.Must(r.Get(t.Context(), fixture.HotKey))(t); got.Balance != callers*each {
				t.Errorf("balance %d, want %d", got.Balance, callers*each)
			}
		})
	}
}
