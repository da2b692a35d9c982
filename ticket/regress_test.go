package ticket_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// What was wrong once with tickets that are given up.

// A draw whose caller gave up left an entry that held up the line for a lease.
func TestADrawThatIsGivenUp(t *testing.T) {
	for name, ask := range map[string]func(*ticket.Queue, context.Context, string) (*ticket.Turn, error){
		"lock": func(q *ticket.Queue, ctx context.Context, name string) (*ticket.Turn, error) {
			return q.Lock(ctx, name)
		},
		"trylock": func(q *ticket.Queue, ctx context.Context, name string) (*ticket.Turn, error) {
			return q.TryLock(ctx, name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			client := rig.NewLate(b.Client, "UpdateItem", 1, func() { time.Sleep(50 * time.Millisecond) })
			q := rig.Must(ticket.New(client, b.Table, ticket.Config{}))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			turn, err := ask(q, ctx, "door")
			cancel()
			if err == nil {
				done(t, turn)
			}
			<-client.Arrived
			wantEmpty(t, b, "door")
		})
	}
}

// A ticket that was drawn while Close ended on its own deadline was renewed for
// ever.
func TestCloseBesideASlowJoin(t *testing.T) {
	b := newBench(t)
	closed := make(chan struct{})
	client := rig.NewLate(b.Client, "UpdateItem", 1, func() { <-closed })
	q := rig.Must(ticket.New(client, b.Table, ticket.Config{}))(t)
	var all sync.WaitGroup
	all.Go(func() {
		_, err := q.Join(t.Context(), "door")
		rig.Is(t, err, ticket.ErrClosed)
	})
	<-client.Sent
	over, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_ = q.Close(over)
	close(closed)
	all.Wait()
	<-client.Arrived
	wantEmpty(t, b, "door")
}

// Who waits looked once at once, for nothing.
func TestAWaiterDoesNotLookAtOnce(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{Lease: time.Hour, Wait: repo.Wait{Min: time.Minute, Max: time.Minute}})
	head := lock(t, q, "door")
	k := join(t, q, "door")
	b.Count.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := k.Wait(ctx)
	rig.Is(t, err, repo.ErrLocked)
	if n := b.Count.Count("GetItem"); n != 0 {
		t.Errorf("%d looks at once with a least pause of a minute", n)
	}
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
