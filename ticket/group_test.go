package ticket_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
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
		rig.Equal(t, g.requests(), 0, "requests of callers that are about to be taken along")
		done(t, g.head)
		g.serve(t, g.head, g.waits, third, fourth)
		rig.Equal(t, g.requests(), 4, "requests for four turns: %v", g.asked)
		rig.Equal(t, len(b.list(t)), 0, "entries stayed")
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

// A holder that was taken out by force takes nobody along: who has relied on it draws for
// itself.
func TestTakenAlongByOneWhoIsBroken(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third := g.lock(t.Context())
		rig.Is(t, b.open(t, b.sound, ticket.Config{}).Break(t.Context(), "door", g.head.Number()))
		rig.Is(t, g.head.Done(t.Context()), repo.ErrLockLost)
		g.serve(t, g.head, g.waits, third)
		rig.Equal(t, len(b.list(t)), 0, "entries stayed")
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
		rig.Equal(t, g.requests(), 0, "requests of one that is known to be broken: %v", g.asked)
		done(t, second.turn)
		g.serve(t, second.turn, third)
		rig.Equal(t, g.requests(), 2, "requests for two turns: %v", g.asked)
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
