package unlocked

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// While processes wait in the queue on an item, its lock goes from one to the next and is
// never free. A writer that holds no lock demands that nobody does, and would wait for as
// long as anybody comes. So it stands in the queue as well, and sends its write under the
// lock when it is its turn: three writes in the place of one, where there is a queue and
// nowhere else.

// QueueWaits reports whether others than the holder wait in the queue on an item. Of one
// that readers do not see the queue ends when it comes into sight.
func (t *Call) QueueWaits(image ddb.Item) bool {
	l, err := t.Core.ParseRecord(image)
	return err == nil && !t.Core.Hidden(image) && len(t.Core.ParseQueue(image).Without(stored.EntryOf(l.By))) > 0
}

// stand waits in the queue on the item behind the holder l, for the lock under which the
// call then sends its writes. It returns nil when they are worth another try.
func (t *Call) stand(ctx context.Context, l stored.Record) error {
	var failed error
	t.stood = true
	err := t.WaitBy(ctx, l, func() {
		failed = t.takeTurn(ctx, true)
	})
	switch {
	case errors.Is(failed, repo.ErrNotFound):
		return nil // it was deleted meanwhile: the next try tells
	case failed != nil:
		return failed
	}
	return err
}

// TakeLock takes the item's lock for a call whose writes others have refused again and
// again: under it the next one cannot be refused. image is what refused the last one. It
// stands in the queue where one is already, and begins none: all who write without the
// lock would have to stand in it from then on, and hold each other up. nil: another try is
// worth it.
func (t *Call) TakeLock(ctx context.Context, image ddb.Item) (err error) {
	t.endTurn(ctx) // it was in time for nothing
	t.stood = true
	err = t.takeTurn(ctx, t.QueueWaits(image))
	if errors.Is(err, repo.ErrNotFound) {
		return nil // the next try tells
	}
	return err
}

// A turn ends soon where its writer has died, or a copy of its request has taken the lock:
// all others stand behind it. Who works for longer renews it.
// But not for ever: a change that does not return loses it.
const (
	turnLease   = 6 * time.Second
	turnEvery   = turnLease / 3
	longestTurn = 5 * time.Minute
)

// NewTurns makes what takes the locks of those who write without, for their turns: in a
// queue, if fair, as a locker with default settings does.
func NewTurns(core *protocol.Core, s lock.Settings, fair bool) *lock.Locker {
	cfg := lock.Config{Kind: s.Kind, Fair: fair, Wait: s.Wait, Skew: s.Skew, Clock: s.Clock,
		Lease: turnLease, Every: turnEvery, Patience: settings.DefaultLease}
	_ = settings.Owner(&cfg.Owner)() // a default is never refused
	return lock.NewLocker(core, cfg)
}

// takeTurn takes the lock for the call.
func (t *Call) takeTurn(ctx context.Context, fair bool) (err error) {
	s := t.Settings
	s.Wait.Attempts = 0 // that of the call bounds how often it comes here
	t.turn, t.fresh, err = NewTurns(t.Core, s, fair).Acquire(ctx, t.Key, t.Raw, lock.Request{})
	if err == nil {
		t.longest = Bound(t.turn)
	}
	return err
}

// Bound ends the renewal of a turn that lasts too long.
func Bound(turn *lock.Lock) *time.Timer { return time.AfterFunc(longestTurn, turn.Halt) }

// Fresh is the item as it was when the call was given its lock, once: to those who ask
// again it is nil, as where there was no such moment.
func (t *Call) Fresh() ddb.Item {
	image := t.fresh
	t.fresh = nil
	return image
}

// IfFree demands of a write that nobody holds the item but the call itself.
func (t *Call) IfFree(w *protocol.Write) {
	if t.turn == nil {
		w.IfUnlocked()
		return
	}
	w.Own(t.turn.ID(), t.turn.Token(), t.turn.CommitTime())
}

// InTurn reports whether the call has its turn: what it writes demands its own hold then,
// and nobody else who follows the protocol writes the item.
func (t *Call) InTurn() bool { return t.turn != nil }

// Holds reports whether an image shows the hold of the call's turn in place.
func (t *Call) Holds(image ddb.Item) bool {
	l, err := t.Core.ParseRecord(image)
	return t.turn != nil && err == nil && l.By == t.turn.ID() && l.Held == t.turn.Token()
}

// Barred reports whether an image shows a hold that keeps out what the call writes.
func (t *Call) Barred(image ddb.Item) bool {
	by := image[t.Core.Attr.LockedBy]
	return by != nil && (t.turn == nil || t.turn.Expired() || !ddb.Equal(by, ddb.Text(t.turn.ID())))
}

// endTurn gives the lock to the next in the queue. That is no part of what the call
// says: if it fails, the lock ends with its lease.
func (t *Call) endTurn(ctx context.Context) {
	if t.turn != nil {
		t.longest.Stop()
		_, _ = t.turn.End(ctx, lock.End{As: lock.Release})
		t.turn, t.fresh = nil, nil
	}
}
