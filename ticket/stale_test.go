package ticket_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// short makes what is stale stale soon, but lasts until a starved process renews
// it.
var short = ticket.Config{Lease: 3 * time.Second, ClockSkew: time.Millisecond}

// passOver kills the holder and two of five waiters, and tells who was served.
func passOver(t *testing.T, cfg ticket.Config, clock func(i int) func() time.Time) {
	b := newBench(t)
	queue := func(p *peer, i int) *ticket.Queue {
		q := b.queueOf(t, p, cfg)
		q.SetClock(clock(i))
		return q
	}
	dead := newPeer()
	begun := time.Now()
	holder := lock(t, queue(dead, 0), "door")
	var (
		mu     sync.Mutex
		served []int
		work   sync.WaitGroup
	)
	var lost []*ticket.Ticket
	for i := range 5 {
		if i == 0 || i == 2 {
			lost = append(lost, join(t, queue(dead, i), "door"))
			continue
		}
		k := join(t, queue(newPeer(), i), "door")
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
	dead.cut()
	work.Wait()
	if !slices.Equal(served, []int{1, 3, 4}) {
		t.Errorf("served %v", served)
	}
	if d := time.Since(begun); d < cfg.Lease {
		t.Errorf("passed over after %v, within the lease", d)
	}
	wantEmpty(t, b, "door")

	// Those who were thought dead notice, even before they hear of it.
	<-holder.Context().Done()
	wantIs(t, context.Cause(holder.Context()), repo.ErrLockExpired)
	dead.faults(nil)
	wantIs(t, holder.Done(t.Context()), repo.ErrLockLost)
	for _, k := range lost {
		<-k.Context().Done()
		_, err := k.Wait(t.Context())
		wantIs(t, err, repo.ErrLockExpired)
		wantIs(t, k.Leave(t.Context()), repo.ErrLockLost)
	}
}

func TestS4_4_TheDeadArePassedOverAndOrderIsKept(t *testing.T) {
	t.Parallel()
	passOver(t, short, func(int) func() time.Time { return time.Now })
}

func TestS4_4_ClocklessWithClocksMinutesApart(t *testing.T) {
	t.Parallel()
	cfg := short
	cfg.Clockless = true
	passOver(t, cfg, func(i int) func() time.Time {
		return func() time.Time { return time.Now().Add(time.Duration(i*i-5) * 5 * time.Minute) }
	})
}

func TestS4_4_ClocklessNeverPassesOverTheLiving(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := ticket.Config{Lease: 4 * time.Second, ClockSkew: time.Millisecond, Clockless: true}
	q := b.queue(t, cfg)
	q.SetClock(func() time.Time { return time.Now().Add(-time.Hour) }) // its times look long past
	turn := lock(t, q, "door")
	other := b.queueOf(t, newPeer(), cfg)
	_, err := other.TryLock(t.Context(), "door")
	wantIs(t, err, repo.ErrLocked)
	ctx, cancel := context.WithTimeout(t.Context(), cfg.Lease*3/2) // it is renewed meanwhile
	defer cancel()
	_, err = other.Lock(ctx, "door")
	wantIs(t, err, repo.ErrLocked)
	if err := context.Cause(turn.Context()); err != nil {
		t.Error(err)
	}
	done(t, turn)
}

func TestS4_4_AWaiterWhoCannotRenewLosesItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn := lock(t, b.queue(t, ticket.Config{}), "door")
	p := newPeer()
	k := join(t, b.queueOf(t, p, short), "door")
	p.cut()
	_, err := k.Wait(t.Context())
	wantIs(t, err, repo.ErrLockExpired)
	wantIs(t, context.Cause(k.Context()), repo.ErrLockExpired)
	done(t, turn)
	p.faults(nil)
	if err := k.Leave(t.Context()); err != nil { // late, but nobody passed it over
		t.Error(err)
	}
	wantEmpty(t, b, "door")
}

func TestS4_4_APassedOverTurnHearsOfItByItsRenewal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn := lock(t, b.queue(t, ticket.Config{Lease: 6 * time.Second}), "door")
	fast := b.queueOf(t, newPeer(), short)
	fast.SetClock(func() time.Time { return time.Now().Add(time.Minute) }) // beyond the allowance
	next, err := fast.TryLock(t.Context(), "door")
	if err != nil {
		t.Fatal(err)
	}
	<-turn.Context().Done()
	wantIs(t, context.Cause(turn.Context()), repo.ErrLockLost)
	wantIs(t, turn.Done(t.Context()), repo.ErrLockLost)
	done(t, next)
}

func TestS4_4_SkewAllowanceKeepsAFastClockOut(t *testing.T) {
	b := newBench(t)
	turn := lock(t, b.queue(t, ticket.Config{}), "door")
	fast := b.queueOf(t, newPeer(), ticket.Config{ClockSkew: 10 * time.Minute})
	fast.SetClock(func() time.Time { return time.Now().Add(5 * time.Minute) })
	_, err := fast.TryLock(t.Context(), "door")
	wantIs(t, err, repo.ErrLocked)
	done(t, turn)
}

// stale puts a queue of dead entries.
func stale(t testing.TB, b *bench, n int) {
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
		b.count.Reset()
		turn, err := call(t.Context(), "door")
		if err != nil {
			t.Fatal(err)
		}
		if turn.Number() != 101 {
			t.Errorf("number %d", turn.Number())
		}
		if n := b.count.Total(); n > 5 { // 100 entries are three requests
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
	if err := k.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	done(t, long)
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
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range append(got, waits) {
		wantIs(t, <-c, ticket.ErrClosed)
	}
	wantIs(t, context.Cause(turn.Context()), ticket.ErrClosed)
	wantIs(t, turn.Done(t.Context()), ticket.ErrClosed)
	wantEmpty(t, b, "door")
	wantEmpty(t, b, "other")
	b.count.Reset()
	_, err := q.Lock(t.Context(), "door")
	wantIs(t, err, ticket.ErrClosed)
	_, err = q.TryLock(t.Context(), "door")
	wantIs(t, err, ticket.ErrClosed)
	if err := q.Close(t.Context()); err != nil || b.count.Total() != 0 {
		t.Errorf("%d requests, %v", b.count.Total(), err)
	}
}

func TestCloseReportsWhatItCouldNotFree(t *testing.T) {
	b := newBench(t)
	p := newPeer()
	q := b.queueOf(t, p, ticket.Config{})
	const tickets = 3
	for range tickets {
		join(t, q, "door")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var late atomic.Int32
	p.faults(func(string, int, []byte) fault.Kind {
		if ctx.Err() != nil {
			late.Add(1)
		}
		return fault.DropRequest
	})
	err := q.Close(ctx)
	wantIs(t, err, context.DeadlineExceeded)
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	if n := late.Load(); n > tickets { // each may have been on its way
		t.Errorf("%d requests after the deadline", n)
	}
	if n := entries(t, b.raw(t, "door")); n != tickets {
		t.Errorf("%d entries", n)
	}
}
