package ticket_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

func TestS4_3_WaitForAGivenTime(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	_, err := q.Lock(rig.Shortly(t), "door")
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, err, context.DeadlineExceeded)
	var held *repo.LockedError
	if !errors.As(err, &held) || held.Token != turn.Number() || time.Until(held.Until) < 20*time.Second {
		t.Errorf("%v (%+v)", err, held)
	}
	if !strings.Contains(err.Error(), "waited for ") {
		t.Errorf("%v does not say for how long it waited", err)
	}
	if n := entries(t, b.raw(t, "door")); n != 1 {
		t.Errorf("%d entries, want the holder's alone", n)
	}
	// A ticket outlives a wait that ended.
	k := join(t, q, "door")
	_, err = k.Wait(rig.Shortly(t))
	rig.Is(t, err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "waited for ") {
		t.Errorf("%v does not say for how long it waited", err)
	}
	if at, err := k.Position(t.Context()); at != 1 || err != nil {
		t.Errorf("position %d, %v", at, err)
	}
	done(t, turn)
	if at, err := k.Position(t.Context()); at != 0 || err != nil {
		t.Errorf("position %d, %v", at, err)
	}
	next := rig.Must(k.Wait(t.Context()))(t)
	if next.Number() != k.Number() || k.Number() <= turn.Number() {
		t.Errorf("number %d, ticket %d, after %d", next.Number(), k.Number(), turn.Number())
	}
	done(t, next)
	// A number of looks is a limit, too.
	turn = lock(t, q, "door")
	few := b.queue(t, ticket.Config{Wait: repo.Wait{Attempts: 3}})
	b.Count.Reset()
	_, err = few.Lock(t.Context(), "door")
	rig.Is(t, err, repo.ErrLocked)
	if n := b.Count.Count("GetItem"); n != 2 { // joining is the first look
		t.Errorf("%d reads, want 2", n)
	}
	done(t, turn)
	wantEmpty(t, b, "door")
}

func TestS4_3_NoWaitFailsIfAnybodyIsAhead(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := rig.Must(q.TryLock(t.Context(), "door"))(t)
	rig.Equal(t, b.Count.Total(), 1, "requests for a free lock")
	before := b.raw(t, "door")
	b.Count.Reset()
	_, err := q.TryLock(t.Context(), "door")
	var held *repo.LockedError
	if !errors.As(err, &held) || !errors.Is(err, repo.ErrLocked) || held.Token != turn.Number() || time.Until(held.Until) < 20*time.Second ||
		held.Key.Partition != "/door" {
		t.Errorf("%v (%+v)", err, held)
	}
	rig.Equal(t, b.Count.Total(), 1, "requests")
	if !ddb.EqualItems(before, b.raw(t, "door")) {
		t.Error("a failed TryLock changed the queue")
	}
	done(t, turn)
	again, err := q.TryLock(t.Context(), "door")
	if err != nil || again.Number() != turn.Number()+1 {
		t.Fatalf("%v, %v", again, err)
	}
	done(t, again)
}

func TestS4_3_WaitForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		const lease = 3 * time.Second
		q := b.open(t, b.client, ticket.Config{Lease: lease})
		turn := lock(t, q, "door")
		k := join(t, q, "door")
		got := make(chan error, 1)
		go func() {
			next, err := k.Wait(context.Background())
			if err == nil {
				err = next.Done(context.Background())
			}
			got <- err
		}()
		// Both outlive many leases, and neither passes the other over.
		first := turn.Until()
		const long = 20 * lease
		select {
		case err := <-got:
			t.Fatalf("the waiter went in: %v", err)
		case <-turn.Context().Done():
			t.Fatal(context.Cause(turn.Context()))
		case <-time.After(long):
		}
		if !turn.Until().After(first.Add(long - lease)) {
			t.Errorf("deadline moved from %v to %v", first, turn.Until())
		}
		done(t, turn)
		rig.Is(t, <-got)
	})
}

// Who waits looked once at once, for nothing.
func TestAWaiterDoesNotLookAtOnce(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{Lease: time.Hour, Wait: repo.Wait{Min: time.Minute, Max: time.Minute}})
	head := lock(t, q, "door")
	k := join(t, q, "door")
	b.Count.Reset()
	_, err := k.Wait(rig.Shortly(t))
	rig.Is(t, err, repo.ErrLocked)
	rig.Equal(t, b.Count.Count("GetItem"), 0, "looks at once with a least pause of a minute")
	done(t, head)
}

// Wait on a context that is over said ErrLocked only at times.
func TestWaitOnAContextThatIsOver(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	head := lock(t, q, "door")
	k := join(t, q, "door")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		if _, err := k.Wait(ctx); !errors.Is(err, repo.ErrLocked) || !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want ErrLocked and Canceled", err)
		}
	}
	done(t, head)
}
