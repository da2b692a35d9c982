package combine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/combine"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// A batch ends when all have left. Each is told the end of its own context: that
// another was the last, and why it left, is none of its concern.
func TestEachIsToldItsOwnEnd(t *testing.T) {
	held := &repo.LockedError{Token: 7}
	for _, c := range []struct {
		name string
		how  func(end error) error // what the end of the batch's context makes of its write
		also []error
	}{
		{"plain", func(end error) error { return fmt.Errorf("UpdateItem: %w", end) }, nil},
		{"waiting", func(end error) error { return ddb.Join(held, end) }, []error{repo.ErrLocked}},
		{"behind others", func(end error) error { return ddb.Join(fmt.Errorf("item: %w", repo.ErrLocked), end) }, []error{repo.ErrLocked}},
		{"contended", func(end error) error { return ddb.Join(&repo.ConflictError{Attempts: 3}, end) }, []error{repo.ErrConflict}},
		{"unknown", func(end error) error { return ddb.Join(repo.ErrOutcomeUnknown, end) }, []error{repo.ErrOutcomeUnknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := newTable(t)
				why := errors.New("going home")
				late, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				cancelled, cancel := context.WithCancelCause(t.Context())
				parts := []*combine.Participant{participant(late, false, add, nil), participant(cancelled, false, add, nil)}
				told := []<-chan verdict{await(parts[0]), await(parts[1])}
				b := groupOf(table, parts...)
				work := item{ID: "a", Version: 1}
				rig.Is(t, edit(t, table, b, &work)) // the write is under way from here
				<-late.Done()
				synctest.Wait()
				cancel(why) // the last one leaves
				<-b.Context().Done()
				b.Conclude(c.how(ddb.CtxError(b.Context())))
				first, second := <-told[0], <-told[1]
				rig.Is(t, first.err, append(c.also, context.DeadlineExceeded)...)
				if errors.Is(first.err, context.Canceled) || errors.Is(first.err, why) {
					t.Errorf("past its deadline, told %v", first.err)
				}
				rig.Is(t, second.err, append(c.also, context.Canceled, why)...)
				if errors.Is(second.err, context.DeadlineExceeded) {
					t.Errorf("cancelled, told %v", second.err)
				}
			})
		})
	}
}

// A caller that leaves before its verdict is in doubt. That its context was another lock's,
// which was lost, does not say that nothing was written.
func TestTheEndOfAnotherLockIsNoVerdict(t *testing.T) {
	for name, concluded := range map[string]bool{"without a verdict": false, "all have left": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := newTable(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				part := participant(ctx, false, add, nil)
				told := await(part)
				b := combine.NewGroup(table, telemetry.Pessimistic, part, nil)
				work := item{ID: "a", Version: 1}
				rig.Is(t, edit(t, table, b, &work)) // the write is under way from here
				cancel(repo.ErrLockLost)
				if concluded {
					<-b.Context().Done()
					b.Conclude(ddb.Join(repo.ErrOutcomeUnknown, ddb.CtxError(b.Context())))
				}
				got := <-told
				rig.Is(t, got.err, repo.ErrOutcomeUnknown, context.Canceled)
				if errors.Is(got.err, repo.ErrLockLost) {
					t.Errorf("%v says that nothing was written", got.err)
				}
				if !concluded {
					b.Conclude(nil)
				}
			})
		})
	}
}
