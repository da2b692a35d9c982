package pessimistic_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// goroutines of the library, but for the one that asks.
func goroutines() (n int) {
	all := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(stack, "dynahold/internal/ddb") || strings.Contains(stack, "dynahold/internal/lease") || strings.Contains(stack, "dynahold/lockedread") {
			n++
		}
	}
	return n
}

type who struct{}

// The context of a change has the caller's values and its deadline, goes on while the
// change runs, and is over after the call, also for those who were derived from it;
// nothing of the call goes on then.
func TestTheContextOfAChange(t *testing.T) {
	b := rig.New(t)
	table := rig.Must(repo.NewTable[stock](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	r := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	rig.Must(r.Create(t.Context(), stock{ID: "apple", Count: 10}))(t)
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), who{}, "me"), time.Hour)
	defer cancel()
	ends, _ := ctx.Deadline()
	for _, waits := range []bool{false, true} {
		var inside, below, first context.Context
		_, err := r.Update(ctx, key, func(ctx context.Context, s *stock) error {
			inside = ctx
			if at, ok := ctx.Deadline(); !ok || !at.Equal(ends) || ctx.Value(who{}) != "me" || ctx.Err() != nil || context.Cause(ctx) != nil {
				t.Errorf("deadline %v, value %v, %v, %v", at, ctx.Value(who{}), ctx.Err(), context.Cause(ctx))
			}
			if waits {
				first = context.WithValue(ctx, who{}, "below")
				var end context.CancelFunc
				below, end = context.WithTimeout(first, time.Hour)
				t.Cleanup(end) // it has ended with the change by then
				if below.Err() != nil {
					t.Error(below.Err())
				}
			}
			s.Count--
			return nil
		})
		rig.Is(t, err)
		if !waits && goroutines() != 0 {
			t.Errorf("%d goroutines of a call that has returned", goroutines())
		}
		if waits {
			<-below.Done()
		}
		if !errors.Is(inside.Err(), context.Canceled) || ctx.Err() != nil {
			t.Errorf("waits %v: %v after the call, and of the caller %v", waits, inside.Err(), ctx.Err())
		}
		if cause := context.Cause(inside); !errors.Is(cause, repo.ErrReleased) && !errors.Is(cause, context.Canceled) {
			t.Errorf("waits %v: cause %v", waits, cause)
		}
		for waits && goroutines() != 0 { // who was told of the end of the lock is about to return
			runtime.Gosched()
		}
	}
}
