package ticket_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// Callers that are taken along, and what befalls the request that does it.

// Whatever becomes of the request that takes a caller along, the caller has one place, or
// none.
func TestTakenAlongUnderFaults(t *testing.T) {
	for name, f := range map[string]fate{"dead": dead, "lost": lost, "slow": slow} {
		for what, hits := range map[string]int{"once": 1, "for a whole call": 3} {
			t.Run(name+", "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					g := newGroup(t, b, ticket.Config{Lease: time.Hour})
					third := g.lock(t.Context())
					var n atomic.Int64
					g.watch(func(_, body string) fate {
						if strings.Contains(body, "REMOVE") && n.Add(1) <= int64(hits) {
							return f
						}
						return delivered
					})
					done(t, g.head)
					g.serve(t, g.head, g.waits, third)
					if l := b.list(t); len(l) != 0 {
						t.Errorf("there stayed %+v", l)
					}
				})
			})
		}
	}
}

// A client that panics where it takes a caller along leaves it to draw for itself.
func TestTakenAlongByAClientThatPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		var once atomic.Bool
		g.watch(func(_, body string) fate {
			if strings.Contains(body, "REMOVE") && once.CompareAndSwap(false, true) {
				panic("the client")
			}
			return delivered
		})
		func() {
			defer func() { _ = recover() }()
			_ = g.head.Done(t.Context())
		}()
		done(t, g.head)
		g.serve(t, g.head, g.waits, third)
		if l := b.list(t); len(l) != 0 {
			t.Errorf("there stayed %+v", l)
		}
	})
}

// Whoever gives up while it is taken along leaves nothing, whenever the answer comes.
func TestGivingUpWhileTakenAlong(t *testing.T) {
	for name, c := range map[string]struct {
		answer time.Duration
		f      fate
	}{"at once": {0, delivered}, "a moment later": {500 * time.Millisecond, delivered}, "too late": {5 * time.Second, delivered}, "lost": {0, lost}} {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					g := newGroup(t, b, ticket.Config{Lease: time.Hour})
					ctx, cancel := context.WithCancel(t.Context())
					third := g.lock(ctx)
					var once atomic.Bool
					closed := make(chan error, 1)
					g.watch(func(_, body string) fate {
						if !strings.Contains(body, "REMOVE") || !once.CompareAndSwap(false, true) {
							return delivered
						}
						if closes {
							go func() { closed <- g.q.Close(context.WithoutCancel(t.Context())) }()
						} else {
							cancel()
						}
						time.Sleep(c.answer)
						return c.f
					})
					began := time.Now()
					ends := make(chan struct{})
					go func() { _ = g.head.Done(t.Context()); close(ends) }()
					got := <-third
					if closes {
						rig.Is(t, got.err, ticket.ErrClosed)
					} else {
						rig.Is(t, got.err, repo.ErrLocked, context.Canceled)
					}
					if took := time.Since(began); took > grace || c.answer < time.Second && took < c.answer {
						t.Errorf("it took %v, and the answer %v", took, c.answer) // nothing of it stays when it is back
					}
					<-ends
					if closes {
						rig.Is(t, <-closed)
						<-g.waits
					} else {
						g.serve(t, g.head, g.waits)
					}
					if l := b.list(t); len(l) != 0 {
						t.Errorf("there stayed %+v", l)
					}
					cancel()
				})
			})
		}
	}
}

// Nothing stays of whoever gives up while the request that takes it along has no answer,
// neither if the caller ends first, nor if that request does.
func TestGivingUpWhileInDoubtOfBeingTakenAlong(t *testing.T) {
	const first = "the caller ends first"
	for name, patience := range map[string]time.Duration{first: 10 * time.Second, "the request ends first": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				g := newGroup(t, b, ticket.Config{Lease: time.Hour})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				third := g.lock(ctx)
				g.watch(func(_, body string) fate {
					if strings.Contains(body, "attribute_not_exists") && strings.Contains(body, "REMOVE") {
						return lost
					}
					return delivered
				})
				ends := make(chan error, 1)
				go func() {
					dying, end := context.WithTimeout(t.Context(), patience)
					defer end()
					ends <- g.head.Done(dying)
				}()
				synctest.Wait()
				if name == first {
					cancel()
					rig.Is(t, (<-third).err, repo.ErrLocked, context.Canceled)
					rig.Is(t, <-ends, repo.ErrOutcomeUnknown)
					g.serve(t, g.head, g.waits)
				} else {
					rig.Is(t, <-ends, repo.ErrOutcomeUnknown)
					g.serve(t, g.head, g.waits, third)
				}
				if l := b.list(t); len(l) != 0 {
					t.Errorf("there stayed %+v", l)
				}
			})
		})
	}
}

// Whoever waits to be taken along leaves with its context, and with Close, and says whom
// it has waited for.
func TestGivingUpBeforeBeingTakenAlong(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		third, fourth := g.lock(ctx), g.lock(t.Context())
		cancel()
		got := <-third
		rig.Is(t, got.err, repo.ErrLocked, context.Canceled)
		var by *repo.LockedError
		if !errors.As(got.err, &by) || by.Token != g.head.Number() {
			t.Errorf("%v does not say who is served", got.err)
		}
		g.watch(nil)
		rig.Is(t, g.q.Close(t.Context()))
		rig.Is(t, (<-fourth).err, ticket.ErrClosed)
		rig.Is(t, (<-g.waits).err, ticket.ErrClosed)
		rig.Equal(t, g.requests(), 2, "requests of a Close with two entries: %v", g.asked)
		rig.Equal(t, len(b.list(t)), 0, "entries stayed")
	})
}

// Whatever is lost on the way, one at a time is served in each process of several, with a
// greater number than the one before, and nothing stays.
func TestGroupsUnderFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	queues := []*ticket.Queue{b.queue(t, ticket.Config{}), b.queue(t, ticket.Config{})}
	random := rand.New(rand.NewPCG(3, 4)) // repeatable on purpose
	kinds := []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Resend, fault.Delay}
	b.Faults(func(_ string, _ int, body []byte) fault.Kind {
		if random.IntN(10) > 0 {
			return fault.None
		}
		kind := kinds[random.IntN(len(kinds))]
		if kind == fault.Resend && bytes.Contains(body, []byte("REMOVE")) {
			// Once others have left too nothing tells a Done whose second answer is shown
			// that it was the first that took its entry away: see docs/limits.md.
			return fault.LoseResponse
		}
		return kind
	})
	var (
		inside, last atomic.Int64
		all          sync.WaitGroup
		mu           sync.Mutex
		numbers      []int64 // guarded by mu
	)
	for i := range 8 {
		all.Go(func() {
			for range rig.Share(6, 30) {
				turn, err := queues[i%2].Lock(t.Context(), "door")
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) {
						continue // a join without any answer is reported
					}
					t.Error(err)
					return
				}
				rig.Equal(t, inside.Add(1), 1, "are served")
				if was := last.Swap(turn.Number()); was >= turn.Number() {
					t.Errorf("number %d after %d", turn.Number(), was)
				}
				mu.Lock()
				numbers = append(numbers, turn.Number())
				mu.Unlock()
				inside.Add(-1)
				rig.Is(t, turn.Done(t.Context()))
			}
		})
	}
	all.Wait()
	b.Faults(nil)
	if !slices.IsSorted(numbers) || len(numbers) == 0 {
		t.Errorf("served in the order %v", numbers)
	}
	done(t, lock(t, queues[0], "door"))
	for _, q := range queues {
		rig.Equal(t, q.Groups(), 0, "groups are left of nobody")
	}
}

// A Done gives the turn back also where the tickets that it would draw do not fit on the item:
// there is room for one more when its own entry has gone.
func TestDoneWhereThoseItTakesAlongDoNotFit(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour, Owner: strings.Repeat("o", 250)})
		third, fourth := g.lock(t.Context()), g.lock(t.Context())
		b.tamper(t, ddb.Item{"mine": ddb.Bytes(make([]byte, 400<<10-900))}) // two entries are there, of 300 bytes each
		var undone atomic.Int64
		g.watch(func(_, body string) fate {
			if strings.Contains(body, `"ReturnValues":"ALL_OLD"`) {
				undone.Add(1)
			}
			return delivered
		})
		if err := g.head.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got locked
		fits := fourth
		select {
		case got = <-third:
		case got = <-fourth:
			fits = third
		}
		rig.Is(t, got.err, repo.ErrTooLarge)
		g.serve(t, g.head, g.waits, fits)
		rig.Equal(t, undone.Load(), 0, "requests take back what was refused")
	})
}

// Nothing stays of a caller that is taken along on an item that cannot be read.
func TestTakenAlongOnAnItemThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		b.tamper(t, ddb.Item{"w_other": ddb.Integer(-1), "b_other": ddb.Integer(1)})
		rig.Is(t, g.head.Done(t.Context()))
		rig.Is(t, (<-third).err, repo.ErrSchema)
		rig.Is(t, (<-g.waits).err, repo.ErrSchema)
		synctest.Wait()
		for name := range b.item(t) {
			if strings.HasPrefix(name, "w_") && name != "w_other" {
				t.Errorf("%s stayed", name)
			}
		}
	})
}
