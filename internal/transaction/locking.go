package transaction

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// NewQueue makes the Queue of a strategy that takes no locks else: a transaction has its
// turn there as a single write has.
func NewQueue(core *protocol.Core, s lock.Settings) *local.Line {
	turns := unlocked.NewTurns(core, s, true)
	turns.HoldTimes = lock.NewHoldTimes()
	return local.NewLine(turns)
}

// lineUp makes whoever opens the item wait in its queue for its lock from now on, if
// its repository wants that of items that others want, or others wait there already: then
// the lock is never free for who does not.
func (e *entry) lineUp() bool {
	if e.queue == nil || e.contention == nil && !e.waiter.QueueWaits(e.image) {
		return false
	}
	e.locker = e.queue
	e.contention.Note(e.core.KeyText(e.raw))
	return true
}

// inQueue reports whether the lock of the item is a turn in its queue, and none that its
// strategy takes. It was promised to nobody: once it is lost, the closure runs again.
func (e *entry) inQueue() bool { return e.queue != nil && e.locker == e.queue }

// retake asks for another run, with new turns at items whose turns were lost: errAgain, or
// why there is none.
func (c *call) retake(ctx context.Context, turns []*entry) error {
	for _, e := range turns {
		e.wanted = true
	}
	return c.conflict(ctx, turns, nil)
}

// lineUpIfContended does so if others wanted the item lately.
func (e *entry) lineUpIfContended() {
	if e.queue != nil && e.contention.Recent(e.core.KeyText(e.raw)) {
		e.locker = e.queue
	}
}

// lockInTurn takes the lock of the item: waiting for it only if all locks that are
// held come earlier in the order of items, else by one try.
func (e *entry) lockInTurn(ctx context.Context, tx *Tx) error {
	c := tx.call
	if err := c.locking.Lock(ctx); err != nil {
		return err
	}
	defer c.locking.Unlock()
	if lockless.MayWait(places(c.held()), e.place) {
		if err := e.lock(ctx, c); err != nil {
			return err
		}
	} else if err := e.take(ctx, c, lock.Request{Try: true}); errors.Is(err, repo.ErrLocked) {
		e.wanted = true
		return tx.beginAnew(err)
	} else if err != nil {
		return err
	}
	tx.watch(e.turn.Lock)
	return nil
}

// lock takes the lock, waiting for it. What is held already must not end with its
// lease meanwhile: a dead holder is waited for as long as its own lasts.
func (e *entry) lock(ctx context.Context, c *call) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	for _, other := range c.held() {
		go other.turn.Lock.ExtendWhile(ctx, waiting)
	}
	defer c.waited(time.Now())
	return e.take(ctx, c, lock.Request{})
}

func (e *entry) take(ctx context.Context, c *call, how lock.Request) error {
	turn, err := e.locker.InTurn(ctx, e.key, e.raw, how, e.next)
	if err != nil {
		e.known = false
		return err
	}
	c.mu.Lock()
	e.turn = turn
	if e.inQueue() {
		e.longest = unlocked.Bound(turn.Lock)
	}
	c.mu.Unlock()
	e.known, e.image, e.moment = true, turn.Item, c.tick()
	return nil
}
