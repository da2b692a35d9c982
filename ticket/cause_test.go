package ticket_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// The cause of a caller's context says how something else ended, or how the turn is about
// to: it is no verdict on the call.

// causedBy is a context that has ended, or will, with a cause.
func causedBy(t *testing.T, cause error, in time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	if in == 0 {
		cancel(cause)
		return ctx
	}
	time.AfterFunc(in, func() { cancel(cause) })
	return ctx
}

// A second Done after one that had no answer, with the turn's own context.
func TestDoneWithoutAnAnswerIsNoSuccess(t *testing.T) {
	for _, cause := range []error{repo.ErrReleased, ticket.ErrClosed, repo.ErrLockLost} {
		t.Run(cause.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
				turn, k := lock(t, q, "door"), join(t, q, "door")
				b.wire.all(dead)
				for _, err := range []error{turn.Done(causedBy(t, cause, 0)), turn.Done(turn.Context()), k.Leave(causedBy(t, cause, 0))} {
					rig.Is(t, err, repo.ErrOutcomeUnknown)
					if errors.Is(err, cause) {
						t.Errorf("%v claims to know how it ended", err)
					}
				}
				rig.Equal(t, len(b.list(t)), 2, "entries: the test shows nothing")
				b.wire.obey(nil)
				rig.Is(t, turn.Done(turn.Context()))
				rig.Is(t, k.Leave(t.Context()))
				rig.Equal(t, len(b.list(t)), 0, "entries stayed")
			})
		})
	}
}

// Who waits while something else of the caller's is lost says whom it waited for, and what
// it could not take back.
func TestLockEndsWithTheLossOfSomethingElse(t *testing.T) {
	for name, f := range map[string]fate{"sound": delivered, "dead": dead} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
				q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
				ctx := causedBy(t, repo.ErrLockLost, time.Minute)
				time.AfterFunc(30*time.Second, func() { b.wire.all(f) })
				_, err := q.Lock(ctx, "door")
				rig.Is(t, err, repo.ErrLocked, context.Canceled)
				var by *repo.LockedError
				if !errors.As(err, &by) || by.Token != head.Number() {
					t.Errorf("%v does not say who is served", err)
				}
				if stays := len(b.list(t)) == 2; stays != (f == dead) || stays != errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Errorf("it stays: %v, and the error is %v", stays, err)
				}
				done(t, head)
			})
		})
	}
}

// A ticket that is drawn in the moment of Close, and cannot be taken back.
func TestJoinBesideCloseSaysWhatStays(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		b.wire.obey(func(string, string) fate {
			b.wire.all(dead)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = q.Close(ctx)
			return delivered
		})
		_, err := q.Join(t.Context(), "door")
		rig.Is(t, err, ticket.ErrClosed, repo.ErrOutcomeUnknown)
		rig.Equal(t, len(b.list(t)), 1, "entries: the test shows nothing")
	})
}

// A caller whose context ends while its place is drawn ends 3 s later, though it has to
// take back what was drawn.
func TestLockEndsInTimeWhereItsPlaceIsDrawnLate(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		b.wire.obey(func(string, string) fate {
			time.Sleep(after + 900*time.Millisecond)
			b.wire.all(dead)
			return delivered
		})
		begun := time.Now()
		_, err := q.Lock(ctx, "door")
		rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
		if took := time.Since(begun); took > after+grace {
			t.Errorf("it took %v", took)
		}
		done(t, head)
	})
}

// Nothing is remembered of a caller that leaves before somebody takes it along, where
// nobody of its process is there any more.
func TestNothingIsLeftOfACallerNobodyTookAlong(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		head := lock(t, q, "door")
		rig.Is(t, b.open(t, b.sound, ticket.Config{}).Break(t.Context(), "door", head.Number()))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		g := &group{bubble: b, q: q}
		waits := g.lock(ctx)
		rig.Is(t, head.Extend(t.Context()), repo.ErrLockLost)
		rig.Is(t, (<-waits).err, repo.ErrLocked, context.DeadlineExceeded)
		rig.Equal(t, q.Groups(), 0, "groups are left of nobody")
	})
}
