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

// Whoever waits by Lock may be away for longer than its lease: it holds nothing
// yet that it could lose.

// away makes a caller stand in line by Lock, behind the holder head, and cuts it
// off until its lease is over.
func (b *bubble) away(ctx context.Context, t *testing.T, cfg ticket.Config) (number int64, got <-chan locked) {
	t.Helper()
	q := b.open(t, b.client, cfg)
	c := make(chan locked, 1)
	go func() {
		turn, err := q.Lock(ctx, "door")
		c <- locked{turn, err}
	}()
	for len(b.list(t)) < 2 {
		time.Sleep(time.Millisecond)
	}
	number = b.list(t)[1].Number
	b.wire.all(dead)
	time.Sleep(3 * cfg.Lease)
	if !b.list(t)[1].Expired {
		t.Fatal("its lease is not over: the test shows nothing")
	}
	return number, c
}

type locked struct {
	turn *ticket.Turn
	err  error
}

var brief = ticket.Config{Lease: 3 * time.Second}

func TestAWaiterTakesUpItsPlaceAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		number, got := b.away(t.Context(), t, brief)
		b.wire.obey(func(_, body string) fate {
			if strings.Contains(body, "if_not_exists") {
				return delivered // it would be drawing anew
			}
			return dead
		})
		time.Sleep(brief.Lease)
		b.wire.obey(nil)
		time.Sleep(2 * brief.Lease) // it is renewed again
		if l := b.list(t); len(l) != 2 || l[1].Expired || l[1].Number != number {
			t.Errorf("the line is %+v, want it alive at its place", l)
		}
		done(t, head)
		c := <-got
		rig.Is(t, c.err)
		if c.turn == nil {
			return
		}
		if c.turn.Number() != number || c.turn.Context().Err() != nil {
			t.Errorf("it has the turn %d, %v, want its place, %d", c.turn.Number(), context.Cause(c.turn.Context()), number)
		}
		rig.Is(t, c.turn.Extend(t.Context()))
		done(t, c.turn)
		rig.Equal(t, len(b.list(t)), 0, "entries stayed")
	})
}

func TestAWaiterThatWasPassedOverDrawsAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		sound := b.open(t, b.sound, ticket.Config{Lease: time.Hour})
		head := lock(t, sound, "door")
		number, got := b.away(t.Context(), t, brief)
		behind := join(t, sound, "door")
		done(t, head)
		next := rig.Must(behind.Wait(t.Context()))(t) // over the one who is away
		b.wire.obey(nil)
		for len(b.list(t)) < 2 {
			time.Sleep(time.Millisecond)
		}
		if next.Context().Err() != nil {
			t.Error("the one who was served has lost its turn")
		}
		done(t, next)
		c := <-got
		rig.Is(t, c.err)
		if c.turn == nil {
			return
		}
		if c.turn.Number() <= next.Number() || c.turn.Number() == number {
			t.Errorf("it has the turn %d after %d", c.turn.Number(), next.Number())
		}
		done(t, c.turn)
		rig.Equal(t, len(b.list(t)), 0, "entries stayed")
	})
}

// Where the context of the waiting ends meanwhile, that is what the error says:
// nothing was held that could be lost.
func TestAWaiterThatIsAwayAndGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		ctx, cancel := context.WithCancel(t.Context())
		_, got := b.away(ctx, t, brief)
		cancel()
		begun := time.Now()
		c := <-got
		rig.Is(t, c.err, repo.ErrLocked, context.Canceled)
		for _, held := range []error{repo.ErrLockExpired, repo.ErrLockLost} {
			if errors.Is(c.err, held) {
				t.Errorf("error %v", c.err)
			}
		}
		if took := time.Since(begun); took > grace {
			t.Errorf("it took %v", took)
		}
		done(t, head)
	})
}

// Close ends also one who is away.
func TestCloseBesideAWaiterThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		q := b.open(t, b.client, brief)
		got := make(chan error, 1)
		go func() { _, err := q.Lock(context.Background(), "door"); got <- err }()
		for len(b.list(t)) < 2 {
			time.Sleep(time.Millisecond)
		}
		b.wire.all(dead)
		time.Sleep(3 * brief.Lease)
		b.wire.obey(nil)
		rig.Is(t, q.Close(t.Context()))
		rig.Is(t, <-got, ticket.ErrClosed)
		if n := len(b.list(t)); n != 1 {
			t.Errorf("%d entries, want the holder's alone", n)
		}
		done(t, head)
	})
}

// TryLock whose answer comes after the end of its lease has never held, and
// tries again.
func TestTryLockThatIsAnsweredTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		q := b.open(t, b.client, brief)
		late := true
		b.wire.obey(func(op, _ string) fate {
			if late && op == "UpdateItem" {
				late = false
				time.Sleep(2 * brief.Lease)
			}
			return delivered
		})
		turn, err := q.TryLock(t.Context(), "door")
		rig.Is(t, err)
		if err == nil {
			rig.Is(t, turn.Extend(t.Context()))
			done(t, turn)
		}
	})
}

// One who is away and comes back to an item that is no queue any more is told so, and does
// not wait for ever.
func TestAWaiterComesBackToAnItemThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, got := b.away(ctx, t, brief)
		b.tamper(t, ddb.Item{"left": ddb.Text("5")})
		b.wire.obey(nil)
		rig.Is(t, (<-got).err, repo.ErrSchema)
	})
}

// One who was passed over, and gives up before it has drawn anew, has lost nothing.
func TestAWaiterThatWasPassedOverGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		sound := b.open(t, b.sound, ticket.Config{Lease: time.Hour})
		head := lock(t, sound, "door")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, got := b.away(ctx, t, brief)
		behind := join(t, sound, "door")
		done(t, head)
		next := rig.Must(behind.Wait(t.Context()))(t) // over the one who is away
		b.wire.obey(func(_, body string) fate {
			if strings.Contains(body, "if_not_exists") {
				return dead
			}
			return delivered
		})
		err := (<-got).err
		rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
		if errors.Is(err, repo.ErrLockLost) {
			t.Errorf("error %v", err)
		}
		done(t, next)
	})
}

// What a Lock that Close has ended cannot give back it gives up 3 s later.
func TestLockEndsInTimeAfterClose(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: time.Hour}), "door")
		q := b.open(t, b.client, ticket.Config{Lease: time.Hour})
		got := make(chan error, 1)
		go func() { _, err := q.Lock(context.Background(), "door"); got <- err }()
		for len(b.list(t)) < 2 {
			time.Sleep(time.Millisecond)
		}
		b.wire.all(dead)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		if err := q.Close(ctx); err == nil {
			t.Error("Close claims success on a dead network")
		}
		rig.Is(t, <-got, ticket.ErrClosed)
		if took := time.Since(begun); took > grace {
			t.Errorf("it took %v", took)
		}
		done(t, head)
	})
}
