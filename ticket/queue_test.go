package ticket_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

func itoa(n int) string { return strconv.Itoa(n) }

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
	if len(tokens) != 24 || !slices.IsSorted(tokens) || tokens[23] != tokens[0]+23 {
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
	rig.Is(t, err, repo.ErrDone, repo.ErrLockLost)

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
