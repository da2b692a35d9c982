package coalescing_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// Of callers of one process that save the same version the second one is refused without
// a request: the first one has told it what is stored. A save in doubt is not overtaken.
func TestSavesOfOneVersionStandInLine(t *testing.T) {
	for name, cfg := range map[string]optimistic.Config{"": {}, "combining": {Combine: true}, "warm": {Warm: 10}} {
		t.Run(name, func(t *testing.T) {
			f, h := fixture.NewWith(t, fixture.Key)
			r := rig.Must(optimistic.New(f.Items(t, h), cfg))(t)
			first := rig.Must(r.Get(t.Context(), fixture.Key))(t)
			save := func(balance int64) (fixture.Account, error) {
				item := first
				item.Balance = balance
				return r.Save(t.Context(), item)
			}
			var behind sync.WaitGroup
			errs := make([]error, 3)
			sent := 0
			h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				sent++
				if n > 1 {
					return send()
				}
				for i := range errs {
					behind.Go(func() { _, errs[i] = save(7) })
				}
				fixture.AwaitCallers(t, len(errs))
				return nil, rig.ErrNoAnswer // it was not applied, and is sent again
			}
			saved := rig.Must(save(5))(t)
			behind.Wait()
			for _, err := range errs {
				rig.Is(t, err, repo.ErrConflict)
				if errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Errorf("it was in doubt: %v", err)
				}
			}
			if got := rig.Must(r.Get(t.Context(), fixture.Key))(t); got.Version != saved.Version || got.Balance != 5 || sent != 2 {
				t.Errorf("%+v after %d requests, saved %+v", got, sent, saved)
			}
			rig.Must(r.Save(t.Context(), saved))(t) // at the version of now
		})
	}
}
