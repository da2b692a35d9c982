package ticket_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// short makes what is stale stale soon, but lasts until a starved process renews
// it.
var short = ticket.Config{Lease: 3 * time.Second, ClockSkew: time.Millisecond}

// passOver kills the holder and two of five waiters, and tells who was served. In
// virtual time: those who live renew in time, however busy the machine is.
func passOver(t *testing.T, cfg ticket.Config, ahead func(i int) time.Duration) {
	inBubble(t, func(t *testing.T, b *bubble) {
		queue := func(client *dynamodb.Client, i int) *ticket.Queue {
			q := b.open(t, client, cfg)
			q.SetClock(ahead(i))
			return q
		}
		begun := time.Now()
		holder := lock(t, queue(b.client, 0), "door")
		var (
			mu     sync.Mutex
			served []int
			work   sync.WaitGroup
			lost   []*ticket.Ticket
		)
		for i := range 5 {
			if i == 0 || i == 2 {
				lost = append(lost, join(t, queue(b.client, i), "door"))
				continue
			}
			k := join(t, queue(b.sound, i), "door")
			work.Go(func() {
				turn, err := k.Wait(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				done(t, turn)
			})
		}
		b.wire.all(dead)
		work.Wait()
		if !slices.Equal(served, []int{1, 3, 4}) {
			t.Errorf("served %v", served)
		}
		if d := time.Since(begun); d < cfg.Lease || d > 2*cfg.Lease {
			t.Errorf("passed over after %v, with a lease of %v", d, cfg.Lease)
		}
		if left := b.list(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}

		// Those who were thought dead notice, even before they hear of it.
		rig.Is(t, rig.Ended(holder.Context(), t), repo.ErrLockExpired)
		b.wire.obey(nil)
		rig.Is(t, holder.Done(t.Context()), repo.ErrLockLost)
		for _, k := range lost {
			<-k.Context().Done()
			_, err := k.Wait(t.Context())
			rig.Is(t, err, repo.ErrLockExpired)
			rig.Is(t, k.Leave(t.Context()), repo.ErrLockLost)
		}
	})
}

func TestS4_4_TheDeadArePassedOverAndOrderIsKept(t *testing.T) {
	passOver(t, short, func(int) time.Duration { return 0 })
}

func TestS4_4_ClocklessWithClocksMinutesApart(t *testing.T) {
	cfg := short
	cfg.Clockless = true
	passOver(t, cfg, func(i int) time.Duration { return time.Duration(i*i-5) * 5 * time.Minute })
}

func TestS4_4_ClocklessNeverPassesOverTheLiving(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := ticket.Config{Lease: 3 * time.Second, ClockSkew: time.Millisecond, Clockless: true}
	q := b.queue(t, cfg)
	q.SetClock(-time.Hour) // its times look long past
	turn := lock(t, q, "door")
	other := b.queueOf(t, b.Peer(), cfg)
	_, err := other.TryLock(t.Context(), "door")
	rig.Is(t, err, repo.ErrLocked)
	ctx, cancel := context.WithTimeout(t.Context(), cfg.Lease*3/2) // it is renewed meanwhile
	defer cancel()
	_, err = other.Lock(ctx, "door")
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, context.Cause(turn.Context()))
	done(t, turn)
}

func TestS4_4_AWaiterWhoCannotRenewLosesItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn := lock(t, b.queue(t, ticket.Config{}), "door")
	p := b.Peer()
	k := join(t, b.queueOf(t, p, short), "door")
	p.Always(fault.Refuse)
	_, err := k.Wait(t.Context())
	rig.Is(t, err, repo.ErrLockExpired)
	rig.Is(t, context.Cause(k.Context()), repo.ErrLockExpired)
	done(t, turn)
	p.Faults(nil)
	rig.Is(t, k.Leave(t.Context())) // late, but nobody passed it over
	wantEmpty(t, b, "door")
}

func TestS4_4_APassedOverTurnHearsOfItByItsRenewal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn := lock(t, b.queue(t, ticket.Config{Lease: 6 * time.Second}), "door")
	fast := b.queueOf(t, b.Peer(), short)
	fast.SetClock(time.Minute) // beyond the allowance
	next := rig.Must(fast.TryLock(t.Context(), "door"))(t)
	rig.Is(t, rig.Ended(turn.Context(), t), repo.ErrLockLost)
	rig.Is(t, turn.Done(t.Context()), repo.ErrLockLost)
	done(t, next)
}

func TestS4_4_SkewAllowanceKeepsAFastClockOut(t *testing.T) {
	b := newBench(t)
	turn := lock(t, b.queue(t, ticket.Config{}), "door")
	fast := b.queueOf(t, b.Peer(), ticket.Config{ClockSkew: 10 * time.Minute})
	fast.SetClock(5 * time.Minute)
	_, err := fast.TryLock(t.Context(), "door")
	rig.Is(t, err, repo.ErrLocked)
	done(t, turn)
}

// stale puts a queue of dead entries.
func stale(t testing.TB, b bench, n int) {
	t.Helper()
	item := ddb.Item{"queue": ddb.Text("/door"), "n": ddb.Integer(int64(n)), "next": ddb.Integer(int64(n))}
	for i := range n {
		id := strconv.Itoa(10_000_000 + i)
		item["w_"+id], item["b_"+id] = ddb.Integer(int64(i+1)), ddb.Integer(time.Now().Add(-time.Minute).Unix())
		if i%2 == 0 {
			item["l_"+id] = ddb.Number("2")
		}
	}
	b.put(t, item)
}

func TestS4_5_ExpiredEntriesAreRemoved(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	for _, call := range []func(context.Context, string) (*ticket.Turn, error){q.Lock, q.TryLock} {
		stale(t, b, 100)
		b.Count.Reset()
		turn := rig.Must(call(t.Context(), "door"))(t)
		rig.Equal(t, turn.Number(), 101, "number")
		if n := b.Count.Total(); n < 4 || n > 5 { // 100 entries are three requests: DynamoDB takes no longer expressions
			t.Errorf("%d requests", n)
		}
		item := b.raw(t, "door")
		if n := entries(t, item); n != 1 || len(item) != 6 { // key, next, n, TTL and the entry's two
			t.Errorf("%d entries on %v", n, item)
		}
		done(t, turn)
		wantEmpty(t, b, "door")
	}
}

func TestS4_5_TheItemIsDueForRemovalAfterEveryEntry(t *testing.T) {
	b := newBench(t)
	long := lock(t, b.queue(t, ticket.Config{Lease: 24 * time.Hour}), "door")
	k := join(t, b.queue(t, short), "door")
	due, err := strconv.ParseInt(number(b.raw(t, "door")["expiresAt"]), 10, 64)
	if err != nil || !time.Unix(due, 0).After(long.Until()) {
		t.Errorf("the item is due at %v, an entry ends at %v (%v)", time.Unix(due, 0), long.Until(), err)
	}
	rig.Is(t, k.Leave(t.Context()))
	done(t, long)
}

// A clock that is a day behind would make the item due while it is used.
func TestWithoutClocksTheItemIsNeverDue(t *testing.T) {
	b := newBench(t)
	before := join(t, b.queue(t, ticket.Config{}), "door")
	q := b.queueOf(t, b.Peer(), ticket.Config{Clockless: true})
	q.SetClock(-26 * time.Hour)
	turn := join(t, q, "door")
	due := func(when string) {
		if at := number(b.raw(t, "door")["expiresAt"]); at != "" {
			t.Errorf("%s the item is due at %s", when, at)
		}
	}
	due("drawn,")
	rig.Is(t, before.Leave(t.Context()))
	drawn := make(chan *ticket.Turn)
	go func() { drawn <- lock(t, q, "door") }()
	time.Sleep(10 * time.Millisecond) // it comes while the first is there
	done(t, rig.Must(turn.Wait(t.Context()))(t))
	next := <-drawn
	due("drawn by another,")
	rig.Is(t, next.Extend(t.Context()))
	due("renewed,")
	done(t, next)
	due("left,")
}

func TestCloseEndsWaitersAndFreesEverything(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	var got []chan error
	for range 20 {
		k := join(t, q, "door")
		c := make(chan error, 1)
		got = append(got, c)
		go func() {
			_, err := k.Wait(context.Background())
			c <- err
		}()
	}
	waits := make(chan error, 1)
	go func() {
		_, err := q.Lock(context.Background(), "other")
		if err == nil {
			_, err = q.Lock(context.Background(), "other")
		}
		waits <- err
	}()
	rig.Await(t, "the second one stands there", func() bool { return entries(t, b.raw(t, "other")) == 2 })
	b.Count.OnRequest(func(_ string, body []byte) { // the work ends before others can have its turn
		if strings.Contains(string(body), strconv.FormatInt(turn.Number(), 10)) && turn.Context().Err() == nil {
			t.Error("given back while its holder goes on")
		}
	})
	rig.Is(t, q.Close(t.Context()))
	for _, c := range append(got, waits) {
		rig.Is(t, <-c, ticket.ErrClosed)
	}
	rig.Is(t, context.Cause(turn.Context()), ticket.ErrClosed)
	rig.Is(t, turn.Done(t.Context()), ticket.ErrClosed)
	wantEmpty(t, b, "door")
	wantEmpty(t, b, "other")
	b.Count.Reset()
	_, err := q.Lock(t.Context(), "door")
	rig.Is(t, err, ticket.ErrClosed)
	_, err = q.TryLock(t.Context(), "door")
	rig.Is(t, err, ticket.ErrClosed)
	if err := q.Close(t.Context()); err != nil || b.Count.Total() != 0 {
		t.Errorf("%d requests, %v", b.Count.Total(), err)
	}
}

func TestCloseReportsWhatItCouldNotFree(t *testing.T) {
	b := newBench(t)
	p := b.Peer()
	q := b.queueOf(t, p, ticket.Config{})
	const tickets = 3
	for range tickets {
		join(t, q, "door")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var late atomic.Int32
	p.Faults(func(string, int, []byte) fault.Kind {
		if ctx.Err() != nil {
			late.Add(1)
		}
		return fault.DropRequest
	})
	err := q.Close(ctx)
	rig.Is(t, err, context.DeadlineExceeded)
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	if n := late.Load(); n > tickets { // each may have been on its way
		t.Errorf("%d requests after the deadline", n)
	}
	rig.Equal(t, entries(t, b.raw(t, "door")), tickets, "entries")
}
