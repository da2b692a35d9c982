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

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// Callers of one Queue share requests, and each keeps its place.

// group is a process whose callers want one turn: its first caller holds, and the second
// waits.
type group struct {
	*bubble
	q     *ticket.Queue
	head  *ticket.Turn
	waits chan locked

	mu    sync.Mutex
	asked []string // guarded by mu: what was sent
}

func newGroup(t *testing.T, b *bubble, cfg ticket.Config) *group {
	t.Helper()
	g := &group{bubble: b, q: b.open(t, b.client, cfg)}
	g.head = lock(t, g.q, "door")
	g.waits = g.lock(t.Context())
	time.Sleep(time.Second) // longer than it waits for somebody who draws for it
	g.watch(nil)
	return g
}

// lock is a caller.
func (g *group) lock(ctx context.Context) chan locked {
	got := make(chan locked, 1)
	go func() {
		turn, err := g.q.Lock(ctx, "door")
		got <- locked{turn, err}
	}()
	synctest.Wait()
	return got
}

// watch notes requests from now on; rule, where set, decides what befalls them.
func (g *group) watch(rule func(op, body string) fate) {
	g.mu.Lock()
	g.asked = nil
	g.mu.Unlock()
	g.wire.obey(func(op, body string) fate {
		g.mu.Lock()
		g.asked = append(g.asked, op)
		g.mu.Unlock()
		if rule != nil {
			return rule(op, body)
		}
		return delivered
	})
}

func (g *group) requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

// serve ends turns in their order, and demands that numbers grow.
func (g *group) serve(t *testing.T, last *ticket.Turn, callers ...chan locked) {
	t.Helper()
	for _, c := range callers {
		got := <-c
		rig.Is(t, got.err)
		if got.turn == nil {
			return
		}
		if last != nil && got.turn.Number() <= last.Number() {
			t.Errorf("number %d after %d", got.turn.Number(), last.Number())
		}
		done(t, got.turn)
		last = got.turn
	}
}

// Who comes while another of its process waits draws with the request that ends the turn:
// one request for each turn, and no look.
func TestATurnIsOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third, fourth := g.lock(t.Context()), g.lock(t.Context())
		if n := g.requests(); n != 0 {
			t.Errorf("%d requests of callers that are about to be taken along", n)
		}
		done(t, g.head)
		g.serve(t, g.head, g.waits, third, fourth)
		if n := g.requests(); n != 4 {
			t.Errorf("%d requests for four turns: %v", n, g.asked)
		}
		if n := len(b.list(t)); n != 0 {
			t.Errorf("%d entries stayed", n)
		}
	})
}

// Nobody loses its place to another process by waiting for its own: for longer than a
// moment, or where others are seen.
func TestACallerKeepsItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		other := b.open(t, b.sound, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		time.Sleep(100 * time.Millisecond)
		behind := join(t, other, "door")
		if l := b.list(t); len(l) != 4 || l[3].Number != behind.Number() {
			t.Errorf("the line is %+v, want the other one behind", l)
		}
		done(t, g.head) // whose answer shows the other one
		fourth := g.lock(t.Context())
		if l := b.list(t); len(l) != 4 || l[2].Number != behind.Number() {
			t.Errorf("the line is %+v, want the last one in it at once", l)
		}
		g.serve(t, g.head, g.waits, third)
		turn := rig.Must(behind.Wait(t.Context()))(t)
		done(t, turn)
		g.serve(t, turn, fourth)
	})
}

// Those who wait to be taken along go to the queue at once when others are seen there.
func TestOthersAreSeenByWhoWaitsToBeTakenAlong(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		other := join(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		rig.Is(t, g.head.Extend(t.Context())) // an answer that shows it
		synctest.Wait()
		if l := b.list(t); len(l) != 4 {
			t.Errorf("the line is %+v, want the third caller in it", l)
		}
		rig.Is(t, other.Leave(t.Context()))
		done(t, g.head)
		g.serve(t, g.head, g.waits, third)
	})
}

// One looks for all, and another when that one has left.
func TestOneLooksForAll(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: 24 * time.Hour}), "door")
		g := &group{bubble: b, q: b.open(t, b.client, ticket.Config{Lease: 24 * time.Hour})}
		ctx, leave := context.WithCancel(t.Context())
		first := g.lock(ctx)
		g.watch(nil)
		time.Sleep(time.Minute)
		alone := g.requests()
		var rest []chan locked
		for range 7 {
			rest = append(rest, g.lock(t.Context()))
		}
		g.watch(nil)
		time.Sleep(time.Minute)
		if n := g.requests(); n > alone {
			t.Errorf("8 callers looked %d times in a minute, one %d times", n, alone)
		}
		leave()
		rig.Is(t, (<-first).err, repo.ErrLocked, context.Canceled)
		g.watch(nil)
		time.Sleep(time.Minute)
		if n := g.requests(); n == 0 || n > 2*alone {
			t.Errorf("7 callers looked %d times in a minute, one %d times", n, alone)
		}
		done(t, head)
		began := time.Now()
		g.serve(t, head, rest...)
		if took := time.Since(began); took > time.Second {
			t.Errorf("they were served after %v", took)
		}
	})
}

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

// A holder that was taken out by force takes nobody along: who has relied on it draws for
// itself.
func TestTakenAlongByOneWhoIsBroken(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		rig.Is(t, b.open(t, b.sound, ticket.Config{}).Break(t.Context(), "door", g.head.Number()))
		rig.Is(t, g.head.Done(t.Context()), repo.ErrLockLost)
		g.serve(t, g.head, g.waits, third)
		if n := len(b.list(t)); n != 0 {
			t.Errorf("%d entries stayed", n)
		}
	})
}

// One that knows of its end sends nothing, and leaves nobody in doubt.
func TestNobodyReliesOnOneWhoKnowsOfItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		rig.Is(t, b.open(t, b.sound, ticket.Config{}).Break(t.Context(), "door", g.head.Number()))
		rig.Is(t, g.head.Extend(t.Context()), repo.ErrLockLost)
		second := <-g.waits // which has looked
		rig.Is(t, second.err)
		g.watch(nil)
		rig.Is(t, g.head.Done(t.Context()), repo.ErrLockLost)
		synctest.Wait()
		if n := g.requests(); n != 0 {
			t.Errorf("%d requests of one that is known to be broken: %v", n, g.asked)
		}
		done(t, second.turn)
		g.serve(t, second.turn, third)
		if n := g.requests(); n != 2 {
			t.Errorf("%d requests for two turns: %v", n, g.asked)
		}
	})
}

// A number that nobody can draw after lets nobody in, and keeps nobody from leaving.
func TestLeavingWhereNobodyCanEnter(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		tamper := "SET #next = :most"
		rig.Must(b.sound.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table, Key: ddb.Item{"queue": ddb.Text("/door")}, UpdateExpression: &tamper,
			ExpressionAttributeNames: map[string]string{"#next": "next"}, ExpressionAttributeValues: ddb.Item{":most": ddb.Number("4611686018427387904")}}))(t)
		rig.Is(t, g.head.Done(t.Context()))
		rig.Is(t, (<-third).err, repo.ErrLocked) // as of every join there
		g.serve(t, g.head, g.waits)
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
					if took := time.Since(began); took > grace {
						t.Errorf("it took %v", took)
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
		if n := g.requests(); n != 2 {
			t.Errorf("%d requests of a Close with two entries: %v", n, g.asked)
		}
		if n := len(b.list(t)); n != 0 {
			t.Errorf("%d entries stayed", n)
		}
	})
}

// Whatever is lost on the way, one at a time is served in each process of several, with a
// greater number than the one before, and nothing stays.
func TestCrowdsUnderFaults(t *testing.T) {
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
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are served", n)
				}
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
		if n := q.Crowds(); n != 0 {
			t.Errorf("%d crowds are left of nobody", n)
		}
	}
}
