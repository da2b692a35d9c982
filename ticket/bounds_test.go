package ticket_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// Every call ends with its context, and at most the 3 s later that its
// documentation names, whatever the network does and other calls are at.

const (
	grace = 3 * time.Second
	after = 700 * time.Millisecond // into the call its context ends
)

func TestCallsEndWithTheirContexts(t *testing.T) {
	for name, f := range map[string]fate{"dead": dead, "lost": lost} {
		for call, do := range map[string]func(context.Context, *ticket.Queue, *ticket.Turn) error{
			"Done":   func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn) error { return turn.Done(ctx) },
			"Extend": func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn) error { return turn.Extend(ctx) },
			"Join": func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn) error {
				_, err := q.Join(ctx, "door")
				return err
			},
			"Lock": func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn) error {
				_, err := q.Lock(ctx, "door")
				return err
			},
			"TryLock": func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn) error {
				_, err := q.TryLock(ctx, "free")
				return err
			},
			"List": func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn) error {
				_, err := q.List(ctx, "door")
				return err
			},
			"Close": func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn) error { return q.Close(ctx) },
		} {
			t.Run(call+", "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
					turn := lock(t, q, "door")
					b.wire.all(f)
					ctx, cancel := context.WithTimeout(t.Context(), after)
					defer cancel()
					begun := time.Now()
					err := do(ctx, q, turn)
					if took := time.Since(begun); took > after+grace {
						t.Errorf("it took %v: %v", took, err)
					}
					if err == nil && f == dead {
						t.Error("it claims success on a dead network")
					}
				})
			})
		}
	}
}

func TestLeaveOnAContextThatIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		k := join(t, q, "door")
		b.wire.all(dead)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		rig.Is(t, k.Leave(ctx), repo.ErrOutcomeUnknown)
		if took := time.Since(begun); took > grace {
			t.Errorf("it took %v", took)
		}
	})
}

// Who waits, and cannot get its place out of the queue on a dead network.
func TestAWaiterGivesUpWithinItsGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		begun := time.Now()
		got := make(chan error, 1)
		go func() { _, err := q.Lock(ctx, "door"); got <- err }()
		time.Sleep(after / 2)
		b.wire.all(dead)
		err := <-got
		rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
		if took := time.Since(begun); took > after+grace {
			t.Errorf("it took %v", took)
		}
		done(t, head)
	})
}

// A call without an end of its own under way does not hold up another one.
func TestCallsDoNotWaitForOthersWithoutEnd(t *testing.T) {
	for name, first := range map[string]func(*ticket.Turn) error{
		"Extend": func(turn *ticket.Turn) error { return turn.Extend(context.Background()) },
		"Done":   func(turn *ticket.Turn) error { return turn.Done(context.Background()) },
	} {
		for next, second := range map[string]func(context.Context, *ticket.Queue, *ticket.Turn) error{
			"Done":   func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn) error { return turn.Done(ctx) },
			"Extend": func(ctx context.Context, _ *ticket.Queue, turn *ticket.Turn) error { return turn.Extend(ctx) },
			"Close":  func(ctx context.Context, q *ticket.Queue, _ *ticket.Turn) error { return q.Close(ctx) },
		} {
			t.Run(next+" beside "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					q := b.open(t, b.client, ticket.Config{Lease: time.Hour, Table: repo.TableConfig{AttemptTimeout: 20 * time.Minute}})
					turn := lock(t, q, "door")
					b.wire.all(dead)
					over := make(chan error, 1)
					go func() { over <- first(turn) }()
					synctest.Wait() // its request is under way
					ctx, cancel := context.WithTimeout(t.Context(), after)
					defer cancel()
					begun := time.Now()
					err := second(ctx, q, turn)
					if took := time.Since(begun); took > after+grace {
						t.Errorf("it took %v: %v", took, err)
					}
					if err == nil {
						t.Error("it claims success on a dead network")
					}
					b.wire.obey(nil)
					t.Log("it ended with", <-over)
				})
			})
		}
	}
}

// An extension gives way to the end of its turn, and says so.
func TestAnExtensionGivesWay(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		turn := lock(t, q, "door")
		b.wire.obey(func(_, body string) fate {
			if strings.Contains(body, "REMOVE") {
				return delivered
			}
			return dead
		})
		over := make(chan error, 1)
		go func() { over <- turn.Extend(context.Background()) }()
		synctest.Wait()
		begun := time.Now()
		rig.Is(t, turn.Done(t.Context()))
		rig.Is(t, <-over, repo.ErrReleased)
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A renewal in the background that has no answer holds up nobody.
func TestARenewalGivesWay(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{})
		turn := lock(t, q, "door")
		renewing := make(chan struct{}, 100)
		b.wire.obey(func(string, string) fate { renewing <- struct{}{}; return dead })
		<-renewing
		b.wire.obey(nil)
		begun := time.Now()
		rig.Is(t, turn.Extend(t.Context()))
		rig.Is(t, turn.Done(t.Context()))
		if took := time.Since(begun); took > 0 {
			t.Errorf("they took %v", took)
		}
	})
}

// What Close gives back it gives back several at a time.
func TestCloseGivesBackSeveralAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		for range 32 {
			join(t, q, "door")
		}
		b.wire.all(slow)
		begun := time.Now()
		rig.Is(t, q.Close(t.Context()))
		if took := time.Since(begun); took > 200*time.Millisecond {
			t.Errorf("32 tickets took %v, a request takes 0.1 s", took)
		}
		rig.Equal(t, len(b.list(t)), 0, "entries stayed")
	})
}

// A look, or a passing over, whose answer is lost costs a moment, not the
// time-out of an attempt.
func TestAWaiterDoesNotWaitForALostAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		f    fate
		text string
	}{
		"look, dead": {dead, "ConsistentRead"}, "look, lost": {lost, "ConsistentRead"},
		"pass, dead": {dead, "REMOVE"}, "pass, lost": {lost, "REMOVE"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				q := b.open(t, b.client, ticket.Config{Lease: 24 * time.Hour})
				var head *ticket.Turn
				if c.text == "REMOVE" {
					b.leaveDead(t)
				} else {
					head = lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
				}
				k := join(t, q, "door")
				hit := make(chan struct{})
				var once atomic.Bool
				b.wire.obey(func(_, body string) fate {
					if strings.Contains(body, c.text) && once.CompareAndSwap(false, true) {
						close(hit)
						return c.f
					}
					return delivered
				})
				served := make(chan error, 1)
				go func() { _, err := k.Wait(t.Context()); served <- err }()
				<-hit
				begun := time.Now()
				if head != nil {
					done(t, head)
				}
				rig.Is(t, <-served)
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("it was served after %v", took)
				}
			})
		})
	}
}

// Behind a service that takes longer for each read than a look is patient at
// first, a waiter is served all the same.
func TestLooksBehindASlowService(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: 24 * time.Hour}), "door")
		k := join(t, b.open(t, b.client, ticket.Config{Lease: 24 * time.Hour}), "door")
		reads := 0
		b.wire.obey(func(op, _ string) fate {
			if op == "GetItem" {
				reads++
				time.Sleep(3 * time.Second)
			}
			return delivered
		})
		done(t, head)
		turn, err := k.Wait(t.Context())
		rig.Is(t, err)
		if err == nil {
			done(t, turn)
		}
		if reads > 4 {
			t.Errorf("%d reads", reads)
		}
	})
}

func TestCloseReportsEachThatIsNotBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		for range 40 {
			join(t, q, "door")
		}
		b.wire.all(dead)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := q.Close(ctx)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		var all interface{ Unwrap() []error }
		if !errors.As(err, &all) || len(all.Unwrap()) != 40 {
			t.Errorf("error %v", err)
		}
	})
}
