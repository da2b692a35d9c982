package load_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	last := -1.0
	calls := 0
	h := load.New(t, engine)
	_, err := h.Run(t.Context(), load.Workload{Span: 700 * time.Millisecond}, adding(), load.Options{Progress: func(done float64) {
		if done < last || done > 1 {
			t.Errorf("%v after %v", done, last)
		}
		last = done
		calls++
	}})
	if err != nil || calls < 3 || last < 0.5 {
		t.Errorf("%v: %d calls, the last with %v", err, calls, last)
	}
}

func TestRealTimeHarnessHasNoVirtualTime(t *testing.T) {
	h := load.RealTime(engine)
	if _, err := h.Run(t.Context(), load.Workload{}, adding(), load.Options{Virtual: true}); err == nil {
		t.Error("virtual time without a test")
	}
	if r, err := h.Run(t.Context(), load.Workload{Span: 100 * time.Millisecond}, adding(), load.Options{}); err != nil || r.Changes == 0 {
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
