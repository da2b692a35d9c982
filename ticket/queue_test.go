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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestS4_1_ServiceInTheOrderOfArrival(t *testing.T) {
	b := newBench(t)
	const waiters = 25
	var (
		mu     sync.Mutex
		served []int
		tokens []int64
		inside atomic.Int32
		work   sync.WaitGroup
	)
	head := lock(t, b.queue(t, ticket.Config{}), "door")
	for i := range waiters {
		k := join(t, b.queueOf(t, b.Peer(), ticket.Config{}), "door") // in this order
		work.Go(func() {
			turn, err := k.Wait(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) > 1 {
				t.Error("two are inside")
			}
			mu.Lock()
			served, tokens = append(served, i), append(tokens, turn.Number())
			mu.Unlock()
			inside.Add(-1)
			done(t, turn)
		})
	}
	done(t, head)
	work.Wait()
	if len(served) != waiters || !slices.IsSorted(served) || !slices.IsSorted(tokens) || tokens[0] != head.Number()+1 || tokens[waiters-1] != head.Number()+waiters {
		t.Errorf("served %v, tokens %v after %d", served, tokens, head.Number())
	}
	wantEmpty(t, b, "door")
}

func TestS4_1_ConcurrentArrivalsAreServedByTheirNumbers(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	var (
		tokens []int64 // guarded by the lock under test: the race detector looks
		work   sync.WaitGroup
	)
	for range 24 {
		work.Go(func() {
			err := q.Do(t.Context(), "door", func(_ context.Context, turn *ticket.Turn) error {
				tokens = append(tokens, turn.Number())
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if len(tokens) != 24 || !slices.IsSorted(tokens) {
		t.Errorf("tokens %v", tokens)
	}
}

func TestS4_2_NamespacesAreIndependent(t *testing.T) {
	b := newBench(t)
	a := b.queue(t, ticket.Config{Namespace: "reads"})
	c := b.queue(t, ticket.Config{Namespace: "writes"})
	plain := b.queue(t, ticket.Config{})
	var turns []*ticket.Turn
	for _, q := range []*ticket.Queue{a, c, plain} {
		turn := rig.Must(q.TryLock(t.Context(), "door"))(t)
		turns = append(turns, turn)
	}
	// What looks like another namespace within an entity is none.
	turn := rig.Must(plain.TryLock(t.Context(), "reads/door"))(t)
	for _, q := range []*ticket.Queue{a, c, plain} {
		_, err := q.TryLock(t.Context(), "door")
		rig.Is(t, err, repo.ErrLocked)
	}
	if turn.Entity() != "reads/door" || turns[0].Entity() != "door" {
		t.Errorf("entities %q, %q", turn.Entity(), turns[0].Entity())
	}
	for _, turn := range append(turns, turn) {
		done(t, turn)
	}
}

func TestS4_3_WaitForAGivenTime(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	_, err := q.Lock(ctx, "door")
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, err, context.DeadlineExceeded)
	var held *repo.LockedError
	if !errors.As(err, &held) || held.Token != turn.Number() || time.Until(held.Until) < 20*time.Second {
		t.Errorf("%v (%+v)", err, held)
	}
	if n := entries(t, b.raw(t, "door")); n != 1 {
		t.Errorf("%d entries, want the holder's alone", n)
	}
	// A ticket outlives a wait that ended.
	k := join(t, q, "door")
	short, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	_, err = k.Wait(short)
	rig.Is(t, err, context.DeadlineExceeded)
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
	if n := b.Count.Total(); n != 1 {
		t.Errorf("%d requests for a free lock, want 1", n)
	}
	before := b.raw(t, "door")
	b.Count.Reset()
	_, err := q.TryLock(t.Context(), "door")
	var held *repo.LockedError
	if !errors.As(err, &held) || !errors.Is(err, repo.ErrLocked) || held.Token != turn.Number() || time.Until(held.Until) < 20*time.Second ||
		held.Key.Partition != "/door" {
		t.Errorf("%v (%+v)", err, held)
	}
	if n := b.Count.Total(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
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
	t.Parallel()
	b := newBench(t)
	const lease = 3 * time.Second
	q := b.queue(t, ticket.Config{Lease: lease})
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
	// Both outlive their first lease, and neither passes the other over.
	first := turn.Until()
	select {
	case err := <-got:
		t.Fatalf("the waiter went in: %v", err)
	case <-turn.Context().Done():
		t.Fatal(context.Cause(turn.Context()))
	case <-time.After(lease * 3 / 2):
	}
	if !turn.Until().After(first.Add(lease / 3)) {
		t.Errorf("deadline moved from %v to %v", first, turn.Until())
	}
	done(t, turn)
	rig.Is(t, <-got)
}

func TestTokenSurvivesTheItem(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	done(t, turn)
	rig.Must(rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table, Key: ddb.Item{"queue": ddb.Text("/door")}}))(t)
	next := lock(t, q, "door")
	if next.Number() <= turn.Number() {
		t.Errorf("token %d after %d", next.Number(), turn.Number())
	}
	done(t, next)
}

func TestDoneAndLeaveAreHarmlessTwice(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	done(t, turn)
	b.Count.Reset()
	done(t, turn)
	rig.Is(t, turn.Extend(t.Context()), repo.ErrReleased)
	rig.Is(t, context.Cause(turn.Context()), repo.ErrReleased)
	k := join(t, q, "door")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // also when the context has ended
		rig.Is(t, k.Leave(ended))
	}
	if n := b.Count.Total(); n != 2 {
		t.Errorf("%d requests, want one to join and one to leave", n)
	}
	_, err := k.Wait(t.Context())
	rig.Is(t, err, repo.ErrReleased)
	_, err = k.Position(t.Context())
	rig.Is(t, err, repo.ErrReleased)
	wantEmpty(t, b, "door")
}

func TestExtendMovesTheDeadline(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	was := turn.Until()
	if err := turn.Extend(t.Context()); err != nil || !turn.Until().After(was) {
		t.Errorf("from %v to %v, %v", was, turn.Until(), err)
	}
	// A wall clock that was set back does not move the beat back.
	before, _ := q.List(t.Context(), "door")
	q.SetClock(-time.Hour)
	if err := turn.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := q.List(t.Context(), "door")
	if err != nil || len(after) != 1 || !after[0].Until.After(before[0].Until) {
		t.Errorf("%+v after %+v, %v", after, before, err)
	}
	done(t, turn)
}

func TestDoReportsEverything(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	broken := errors.New("broken")
	err := q.Do(t.Context(), "door", func(context.Context, *ticket.Turn) error { return broken })
	rig.Is(t, err, broken)
	wantEmpty(t, b, "door")

	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_ = q.Do(t.Context(), "door", func(context.Context, *ticket.Turn) error { panic("in fn") })
	}()
	wantEmpty(t, b, "door")

	// The context ends with the turn, and the loss is told even if fn is content.
	err = q.Do(t.Context(), "door", func(ctx context.Context, turn *ticket.Turn) error {
		if _, err := rig.Client().DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &b.Table, Key: ddb.Item{"queue": ddb.Text("/door")}}); err != nil {
			return err
		}
		rig.Is(t, turn.Extend(ctx), repo.ErrLockLost)
		<-ctx.Done()
		rig.Is(t, context.Cause(ctx), repo.ErrLockLost)
		return nil
	})
	rig.Is(t, err, repo.ErrLockLost)

	ended, cancel := context.WithCancel(t.Context())
	err = q.Do(ended, "door", func(ctx context.Context, _ *ticket.Turn) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	rig.Is(t, err, context.Canceled)
	wantEmpty(t, b, "door")
}

func TestListIsInOrderOfService(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	if none, err := q.List(t.Context(), "door"); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	var want []int64
	for range 5 {
		want = append(want, join(t, q, "door").Number())
	}
	want = append(want, join(t, b.queue(t, ticket.Config{Lease: time.Minute}), "door").Number())
	b.Count.Reset()
	list, err := q.List(t.Context(), "door")
	if err != nil || b.Count.Total() != 1 {
		t.Fatalf("%d requests, %v", b.Count.Total(), err)
	}
	var got []int64
	for _, e := range list {
		got = append(got, e.Number)
		if e.Expired || len(e.ID) != 8 || time.Until(e.Until) <= 0 {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(got, want) || list[0].Lease != 30*time.Second || list[5].Lease != time.Minute {
		t.Errorf("%+v, want numbers %v", list, want)
	}
	q.SetClock(time.Hour)
	if list, err := q.List(t.Context(), "door"); err != nil || !list[0].Expired {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestBadInputs(t *testing.T) {
	b := newBench(t)
	configs := map[string]ticket.Config{
		"namespace with a slash":          {Namespace: "a/b"},
		"lease too short":                 {Lease: time.Millisecond},
		"lease too long":                  {Lease: 25 * time.Hour},
		"negative lease":                  {Lease: -time.Second},
		"negative skew":                   {ClockSkew: -1},
		"negative wait":                   {Wait: repo.Wait{Min: -1}},
		"negative attempt timeout":        {AttemptTimeout: -1},
		"lease of less than three tries":  {Lease: 2 * time.Second, AttemptTimeout: time.Second},
		"default lease of less than that": {AttemptTimeout: 11 * time.Second},
	}
	for name, cfg := range configs {
		if _, err := ticket.New(b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ticket.New(nil, b.Table, ticket.Config{}); !errors.Is(err, repo.ErrConfig) {
		t.Errorf("no client: %v", err)
	}
	if _, err := ticket.New(b.Client, "", ticket.Config{}); !errors.Is(err, repo.ErrConfig) {
		t.Errorf("no table: %v", err)
	}
	if _, err := ticket.New(b.Client, b.Table, ticket.Config{Lease: 3 * time.Second, AttemptTimeout: time.Second}); err != nil {
		t.Error(err)
	}

	q := b.queue(t, ticket.Config{Namespace: "space"})
	long := strings.Repeat("x", 2048-len("space/"))
	calls := map[string]func(entity string) error{
		"Lock":    func(e string) error { _, err := q.Lock(t.Context(), e); return err },
		"TryLock": func(e string) error { _, err := q.TryLock(t.Context(), e); return err },
		"Join":    func(e string) error { _, err := q.Join(t.Context(), e); return err },
		"List":    func(e string) error { _, err := q.List(t.Context(), e); return err },
		"Do": func(e string) error {
			return q.Do(t.Context(), e, func(context.Context, *ticket.Turn) error { return nil })
		},
	}
	for name, call := range calls {
		for what, entity := range map[string]string{"empty": "", "too long": long + "x", "no UTF-8": "\xff"} {
			if err := call(entity); !errors.Is(err, repo.ErrKey) {
				t.Errorf("%s with a name that is %s: %v", name, what, err)
			}
		}
	}
	if n := b.Count.Total(); n != 0 {
		t.Errorf("%d requests were sent for nothing", n)
	}
	turn := rig.Must(q.TryLock(t.Context(), long))(t)
	done(t, turn)

	nowhere := rig.Must(ticket.New(b.Client, b.Table+"-missing", ticket.Config{}))(t)
	_, err := nowhere.Lock(t.Context(), "door")
	rig.Is(t, err, repo.ErrNoTable)
	_, err = nowhere.TryLock(t.Context(), "door")
	rig.Is(t, err, repo.ErrNoTable)
	_, err = nowhere.List(t.Context(), "door")
	rig.Is(t, err, repo.ErrNoTable)
}

func TestItemsThatAreNoQueues(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	one := ddb.Integer(1)
	for name, item := range map[string]ddb.Item{
		"ticket is text":    {"w_x": ddb.Text("1"), "b_x": one, "n": one, "next": one},
		"ticket has no end": {"w_x": one, "n": one, "next": one},
		"end is text":       {"w_x": one, "b_x": ddb.Text("1"), "n": one, "next": one},
		"lease is text":     {"w_x": one, "b_x": one, "l_x": ddb.Text("1"), "n": one, "next": one},
		"fraction":          {"w_x": ddb.Number("1.5"), "b_x": one, "n": one, "next": one},
		"next is text":      {"next": ddb.Text("1")},
		"n is text":         {"n": ddb.Text("1")},
		"left is text":      {"left": ddb.Text("1")},
	} {
		item["queue"] = ddb.Text("/door")
		b.put(t, item)
		if _, err := q.Lock(t.Context(), "door"); !errors.Is(err, repo.ErrSchema) {
			t.Errorf("Lock, %s: %v", name, err)
		}
		if _, err := q.TryLock(t.Context(), "door"); !errors.Is(err, repo.ErrSchema) {
			t.Errorf("TryLock, %s: %v", name, err)
		}
		if after := b.raw(t, "door"); len(after) > len(item)+4 { // counters and TTL may be there
			t.Errorf("%s: an entry stayed: %v", name, after)
		}
	}
	// An empty queue that claims to have entries would refuse TryLock for ever.
	b.put(t, ddb.Item{"queue": ddb.Text("/door"), "n": one})
	_, err := q.TryLock(t.Context(), "door")
	rig.Is(t, err, repo.ErrSchema)
}

func TestEnsureTableVerifies(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	rig.Is(t, q.EnsureTable(t.Context()))
	out, err := b.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &b.Table})
	if err != nil || aws.ToString(out.TimeToLiveDescription.AttributeName) != "expiresAt" {
		t.Errorf("%+v, %v", out, err)
	}
}
