package ticket_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

// Tickets that are given up.

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
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-client.Sent; cancel() }()
			turn, err := ask(q, ctx, "door")
			if err == nil {
				done(t, turn)
			}
			<-client.Arrived
			wantEmpty(t, b, "door")
		})
	}
}

// A client that ends the goroutine of a Lock that waits, or panics there, leaves no place behind:
// it was renewed for ever, and nobody had it.
func TestALockWhoseClientEndsItsGoroutine(t *testing.T) {
	for name, end := range map[string]func(){"ends": runtime.Goexit, "panics": func() { panic("the client") }} {
		b := newBench(t)
		head := lock(t, b.queue(t, ticket.Config{}), "door")
		q := rig.Must(ticket.New(&rig.Intercept{Client: b.Client, Get: func(int) { end() }}, b.Table, ticket.Config{}))(t)
		var all sync.WaitGroup
		all.Go(func() {
			defer func() { _ = recover() }()
			_, err := q.Lock(t.Context(), "door")
			t.Errorf("%s: the wait had an answer: %v", name, err)
		})
		all.Wait()
		rig.Equal(t, entries(t, b.raw(t, "door")), 1, "%s: entries", name)
		done(t, head)
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
