package ticket_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// What callers of one Queue tell each other, and when they look for themselves.

// late holds back an answer that was given.
type late struct {
	next fault.Doer
	op   atomic.Value // of the request whose answer it is; "": none
}

const lateness = 300 * time.Millisecond

// Do implements the SDK's HTTP client.
func (l *late) Do(req *http.Request) (*http.Response, error) {
	held := l.op.CompareAndSwap(fault.Operation(req), "")
	resp, err := l.next.Do(req)
	if held {
		time.Sleep(lateness)
	}
	return resp, err
}

// holdNext holds back the answer to the next request of an operation, and returns when
// it was asked for.
func (g *group) holdNext(op string) {
	g.late.op.Store(op)
	for g.late.op.Load() != "" {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	time.Sleep(10 * time.Millisecond) // nothing is asked for at the same moment
}

// An answer that comes later than one which was asked for after it is no news: others were
// seen since.
func TestAnOldAnswerDoesNotHideOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		g.holdNext("GetItem") // by the one who waits
		other := join(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		rig.Is(t, g.head.Extend(t.Context())) // an answer that shows it
		time.Sleep(2 * lateness)
		third := g.lock(t.Context())
		if l := b.list(t); len(l) != 4 {
			t.Errorf("the line is %+v, want the third caller in it at once", l)
		}
		rig.Is(t, other.Leave(t.Context()))
		done(t, g.head)
		g.serve(t, g.head, g.waits, third)
	})
}

// A ticket whose turn has come is not told of an older line.
func TestAnOldAnswerDoesNotHideATurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		third, fourth := join(t, g.q, "door"), join(t, g.q, "door")
		g.holdNext("UpdateItem") // a renewal
		done(t, g.head)
		done(t, (<-g.waits).turn)
		time.Sleep(2 * lateness)
		g.watch(nil)
		turn := rig.Must(third.Wait(t.Context()))(t)
		rig.Equal(t, g.requests(), 0, "requests for a turn that has come: %v", g.asked)
		done(t, turn)
		rig.Is(t, fourth.Leave(t.Context()))
	})
}

// Who stands behind another of its process looks for itself when that one waits no longer,
// whether it has left or not.
func TestAnotherLooksWhenOneHasStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: 24 * time.Hour}), "door")
		g := &group{bubble: b, q: b.open(t, b.client, ticket.Config{Lease: 24 * time.Hour})}
		first := join(t, g.q, "door")
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() {
			_, err := first.Wait(ctx)
			stopped <- err
		}()
		synctest.Wait()
		second := g.lock(t.Context())
		time.Sleep(time.Minute)
		stop()
		rig.Is(t, <-stopped, repo.ErrLocked, context.Canceled)
		g.watch(nil)
		time.Sleep(time.Minute)
		if g.requests() == 0 {
			t.Error("nobody looks")
		}
		done(t, head)
		rig.Is(t, first.Leave(t.Context()))
		g.serve(t, head, second)
	})
}

// Who relies on a turn of its process hears at once that it is lost.
func TestALostTurnIsNews(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		rig.Is(t, b.open(t, b.sound, ticket.Config{}).Break(t.Context(), "door", g.head.Number()))
		began := time.Now()
		rig.Is(t, g.head.Extend(t.Context()), repo.ErrLockLost)
		g.serve(t, g.head, g.waits)
		if took := time.Since(began); took > 0 {
			t.Errorf("the next one was served after %v", took)
		}
	})
}

// A ticket that was drawn for another counts its lease from when that was asked for.
func TestTheDeadlineOfATicketThatAnotherDrew(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		began := time.Now()
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		lasts := g.head.Until().Sub(began)
		third := g.lock(t.Context())
		g.watch(func(_, body string) fate {
			if strings.Contains(body, "REMOVE") {
				return slow
			}
			return delivered
		})
		asked := time.Now()
		done(t, g.head)
		g.watch(nil)
		done(t, (<-g.waits).turn)
		got := <-third
		rig.Is(t, got.err)
		if until := got.turn.Until(); until.After(asked.Add(lasts)) {
			t.Errorf("it ends %v after it was asked for, want %v", until.Sub(asked), lasts)
		}
		done(t, got.turn)
	})
}

// However many come at once, a request stays within what the service takes: a longer one
// is refused.
func TestManyAreTakenAlongInShares(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		g := newGroup(t, b, ticket.Config{Lease: time.Hour})
		callers := []chan locked{g.waits}
		for range 100 {
			callers = append(callers, g.lock(t.Context()))
		}
		if err := g.head.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.serve(t, g.head, callers...)
	})
}
