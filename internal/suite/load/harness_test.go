package load_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/load"
)

func TestCancelledRunsEnd(t *testing.T) {
	both(t, func(t *testing.T, virtual bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := load.New(t, engine)
		_, err := h.Run(ctx, load.Workload{Workers: 4, Span: 1000 * time.Hour}, adding(), load.Options{Virtual: virtual, Progress: func(float64) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestProgressGrows(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []float64
	_, err := load.New(t, engine).Run(ctx, load.Workload{Span: 20 * time.Second}, adding(), load.Options{Progress: func(done float64) {
		if told = append(told, done); len(told) > 3 && done > 0.02 {
			cancel() // seen enough
		}
	}})
	if !errors.Is(err, context.Canceled) || !slices.IsSorted(told) || slices.Max(told) > 1 {
		t.Errorf("%v, %v", told, err)
	}
}

// Bubbles do not share a clock: two runs at once have the results of two runs
// after each other.
func TestRunsAtOnce(t *testing.T) {
	h := load.New(t, engine)
	var results [2]load.Result
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			r, err := h.Run(t.Context(), load.Workload{Span: time.Second, Seed: 3}, adding(), load.Options{Virtual: true})
			if err != nil {
				t.Error(err)
			}
			results[i] = r
		})
	}
	all.Wait()
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		t.Error(diff)
	}
}

func TestRealTimeHarnessHasNoVirtualTime(t *testing.T) {
	h := load.RealTime(engine)
	if _, err := h.Run(t.Context(), load.Workload{}, adding(), load.Options{Virtual: true}); err == nil {
		t.Error("virtual time without a test")
	}
	if r, err := h.Run(t.Context(), load.Workload{Enough: 5, Span: time.Minute, Warmup: time.Millisecond}, adding(), load.Options{}); err != nil || r.Changes == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestContendersThatDoNotOpen(t *testing.T) {
	broken := errors.New("out of order")
	c := load.Contender{Name: "broken", Open: func(context.Context, *dynamodb.Client, string) (load.Change, error) { return nil, broken }}
	both(t, func(t *testing.T, virtual bool) {
		if _, err := load.New(t, engine).Run(t.Context(), load.Workload{}, c, load.Options{Virtual: virtual}); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}
