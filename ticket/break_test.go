package ticket_test

import (
	"context"
	"errors"
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

// Whose ticket is broken learns it from its next request, and the next in line goes in
// with a greater number.
func TestBreakOfATurn(t *testing.T) {
	b := newBench(t)
	q, other := b.queue(t, ticket.Config{}), b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	behind := join(t, other, "door")
	b.Count.Reset()
	rig.Is(t, other.Break(t.Context(), "door", turn.Number()))
	if n := b.Count.Total(); n != 2 {
		t.Errorf("%d requests, want a read and a write", n)
	}
	next := rig.Must(behind.Wait(t.Context()))(t)
	if next.Number() <= turn.Number() {
		t.Errorf("the next turn has the number %d, after %d", next.Number(), turn.Number())
	}
	rig.Is(t, turn.Extend(t.Context()), repo.ErrLockLost)
	rig.Is(t, rig.Ended(turn.Context(), t), repo.ErrLockLost)
	rig.Is(t, turn.Done(t.Context()), repo.ErrLockLost)
	rig.Is(t, other.Break(t.Context(), "door", turn.Number()), repo.ErrNotHeld)
	rig.Is(t, other.Break(t.Context(), "door", 7), repo.ErrNotHeld)
	rig.Is(t, other.Break(t.Context(), "nothing", 7), repo.ErrNotHeld)
	done(t, next)
	wantEmpty(t, b, "door")
}

// A waiting ticket that is broken ends there; who waits by Lock stands at the end of
// the line.
func TestBreakOfATicketThatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q, operator := b.queue(t, ticket.Config{}), b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	ticketed := join(t, q, "door")
	rig.Is(t, operator.Break(t.Context(), "door", ticketed.Number()))
	_, err := ticketed.Position(t.Context())
	rig.Is(t, err, repo.ErrLockLost)

	locked := make(chan *ticket.Turn, 1)
	go func() {
		turn, err := q.Lock(t.Context(), "door")
		if err != nil {
			t.Error(err)
		}
		locked <- turn
	}()
	rig.Await(t, "the caller stands in line", func() bool { return len(list(t, operator)) == 2 })
	first := list(t, operator)[1].Number
	behind := join(t, operator, "door")
	rig.Is(t, operator.Break(t.Context(), "door", first))
	rig.Await(t, "it stands in line again", func() bool {
		all := list(t, operator)
		return len(all) == 3 && all[2].Number > behind.Number()
	})
	rig.Is(t, behind.Leave(t.Context()))
	done(t, turn)
	again := <-locked
	if again == nil || again.Number() <= first {
		t.Fatalf("served with %v, after %d was broken", again, first)
	}
	done(t, again)
}

// A removal without an answer took itself for the cause when the entry was gone in time:
// nobody else could have taken it away.
func TestVerdictsBesideABreak(t *testing.T) {
	for name, c := range map[string]struct {
		kind fault.Kind
		want error // of Done
		told error // of Break
	}{
		"Done never arrives":         {fault.DropRequest, repo.ErrLockLost, nil},
		"the answer to Done is lost": {fault.LoseResponse, nil, repo.ErrNotHeld},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			q := b.queue(t, ticket.Config{})
			operator := rig.Must(ticket.New(rig.Client(), b.Table, ticket.Config{}))(t)
			turn := lock(t, q, "door")
			var n atomic.Int32
			b.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op != "UpdateItem" {
					return fault.None
				}
				switch n.Add(1) {
				case 1:
					return c.kind
				case 2: // between the attempts
					if err := operator.Break(context.Background(), "door", turn.Number()); !errors.Is(err, c.told) {
						t.Errorf("Break: %v, want %v", err, c.told)
					}
				}
				return fault.None
			})
			if err := turn.Done(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("Done: %v, want %v", err, c.want)
			}
		})
	}
}

// An operator's clock that is a day ahead takes no evidence away of what was broken just now.
func TestVerdictsOfBreaksWithoutClocks(t *testing.T) {
	b := newBench(t)
	cfg := ticket.Config{Clockless: true}
	q, operator := b.queue(t, cfg), b.queueOf(t, b.Peer(), cfg)
	operator.SetClock(26 * time.Hour)
	done(t, lock(t, q, "door"))
	turn, waits := lock(t, q, "door"), join(t, q, "door")
	rig.Is(t, operator.Break(t.Context(), "door", turn.Number()))
	rig.Is(t, operator.Break(t.Context(), "door", waits.Number()))
	rig.Is(t, turn.Done(t.Context()), repo.ErrLockLost)
	rig.Is(t, waits.Leave(t.Context()), repo.ErrLockLost)
}

// What Break is told where its answer was lost, or others were quicker.
func TestVerdictsOfBreak(t *testing.T) {
	nothing := func(*testing.T, bench, *ticket.Turn) {}
	renewed := func(t *testing.T, _ bench, turn *ticket.Turn) { rig.Is(t, turn.Extend(t.Context())) }
	left := func(t *testing.T, _ bench, turn *ticket.Turn) { done(t, turn) }
	deleted := func(t *testing.T, b bench, _ *ticket.Turn) {
		rig.Must(rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table, Key: ddb.Item{"queue": ddb.Text("/door")}}))(t)
	}
	for name, c := range map[string]struct {
		kind  fault.Kind
		after func(*testing.T, bench, *ticket.Turn) // before the second attempt
		want  error
	}{
		"answer lost":                             {fault.LoseResponse, nothing, nil},
		"delivered twice":                         {fault.Resend, nothing, nil},
		"answer lost, and the item deleted":       {fault.LoseResponse, deleted, repo.ErrOutcomeUnknown},
		"never arrived":                           {fault.DropRequest, nothing, nil},
		"never arrived, and the ticket renewed":   {fault.DropRequest, renewed, nil},
		"never arrived, and the turn done":        {fault.DropRequest, left, repo.ErrNotHeld},
		"refused for now, and the ticket renewed": {fault.Throttle, renewed, nil},
		"refused for now, and the turn done":      {fault.Throttle, left, repo.ErrNotHeld},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			holder := rig.Must(ticket.New(rig.Client(), b.Table, ticket.Config{}))(t)
			t.Cleanup(func() { _ = holder.Close(context.Background()) })
			turn := lock(t, holder, "door")
			operator := b.queue(t, ticket.Config{})
			var n atomic.Int32
			b.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op != "UpdateItem" {
					return fault.None
				}
				switch n.Add(1) {
				case 1:
					return c.kind
				case 2:
					c.after(t, b, turn)
				}
				return fault.None
			})
			if err := operator.Break(t.Context(), "door", turn.Number()); !errors.Is(err, c.want) {
				t.Errorf("told %v, want %v", err, c.want)
			}
			b.Faults(nil)
			if c.want == nil {
				rig.Is(t, turn.Done(t.Context()), repo.ErrLockLost)
			}
		})
	}
}

// Entries say who made them and when, and take that away with them.
func TestOwnersOfEntries(t *testing.T) {
	b := newBench(t)
	from := time.Now().Truncate(time.Second)
	q := b.queue(t, ticket.Config{Owner: "till 7", Lease: time.Minute})
	plain := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	waits := join(t, plain, "door")
	all := list(t, plain)
	if all[0].Owner != "till 7" || all[0].Since.Before(from) || all[0].Since.After(time.Now()) {
		t.Errorf("the entry is %+v", all[0])
	}
	if all[1].Owner != "" || !all[1].Since.IsZero() {
		t.Errorf("the entry of one without a name is %+v", all[1])
	}
	_, err := plain.TryLock(t.Context(), "door")
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "till 7" {
		t.Errorf("refused by %v", err)
	}
	rig.Is(t, waits.Leave(t.Context()))
	rig.Is(t, plain.Break(t.Context(), "door", turn.Number()))
	done(t, lock(t, q, "door"))
	for name := range b.raw(t, "door") {
		if name[:min(len(name), 2)] == "o_" {
			t.Errorf("%s stays behind", name)
		}
	}
	_, err = ticket.New(rig.Client(), b.Table, ticket.Config{Owner: "a\nb"})
	rig.Is(t, err, repo.ErrConfig)
}
