package mutex

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Lock is a held name. It is safe for concurrent use; it ends with Unlock, or
// its loss.
type Lock struct {
	l    *Locker
	turn *local.Turn
	hold *lock.Lock // the turn's

	mu      sync.Mutex
	payload []byte // guarded by mu
}

func newLock(l *Locker, turn *local.Turn) *Lock {
	h := &Lock{l: l, turn: turn, hold: turn.Lock, payload: payloadOf(turn.Item, l.cfg.Payload)}
	if l.drops(turn.Item) {
		turn.Unwanted = lock.Drop
	}
	if l.cfg.Mode == FailOpen || turn.Unwanted == lock.Drop {
		turn.Item = nil // nobody asks for anything but the payload any more: thousands may be held
	}
	return h
}

// drops reports whether a row goes with its lock. One with attributes of
// somebody else is more than a lock: it stays.
func (l *Locker) drops(row ddb.Item) bool {
	return l.cfg.Mode == FailClosed && l.taker.Core.LockOnly(row, l.cfg.Payload)
}

func payloadOf(item ddb.Item, attr string) []byte {
	if b, ok := item[attr].(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

// Key is the name, as the table has it.
func (l *Lock) Key() repo.Key { return l.hold.Key() }

// ID is the identity of this hold: whoever has it can release the lock
// ([Locker.Release]). Do not log it.
func (l *Lock) ID() string { return l.hold.ID() }

// Token is the fencing token: it grows with every acquisition of the name. An
// outside resource that is to be protected must refuse smaller ones.
//
// That is so in FailOpen, whose rows stay. A fail-closed lock whose row was
// deleted by an unlock begins anew with the Unix time in microseconds of its
// taker, when the request was sent. Its token is greater than those of all who
// lost the lock, and of all whom this call has waited for; but it can be smaller
// than, or equal to, that of a holder before, who has unlocked, if clocks differ,
// or if the request, or one that had no answer and arrives late, was under way
// for longer than that holder held. A row that has an attribute of your own before it is
// locked is never deleted, so its tokens always grow.
func (l *Lock) Token() int64 { return l.hold.Token() }

// Until is when the holder must stop, on its own clock: the end of the lease,
// counted from when the request was first sent, less a margin of a tenth of
// the lease, at most 1 s. Zero for a fail-closed lock.
func (l *Lock) Until() time.Time { return l.hold.Until() }

// Context is cancelled when the hold ends, with the cause: ErrLockLost,
// ErrLockExpired (joined with why the last heartbeat failed), or ErrReleased. With it a
// Lock of the same name is ErrNested: it would wait for itself.
func (l *Lock) Context() context.Context { return l.inside(l.hold.Context()) }

// inside is a context that tells of the lock.
func (l *Lock) inside(ctx context.Context) context.Context {
	raw, err := l.l.table.EncodeKey(l.Key())
	if err != nil {
		return ctx // it is the key of a lock: it has been encoded before
	}
	return nesting.Holding(ctx, nesting.ItemOf(l.l.taker.Core.Table, raw), l.ID(), l.hold.Cause)
}

// Format prints the name and the token.
func (l *Lock) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "lock %v, token %d", l.Key(), l.Token())
}

// Extend moves the end of the lease to a full lease from now. One request;
// ErrLockExpired, ErrLockLost or ErrReleased when it is too late. For a
// fail-closed lock it verifies that it is still held.
func (l *Lock) Extend(ctx context.Context) error { return l.hold.Extend(ctx) }

// Payload is what the last SetPayload, of this holder or an earlier one, left
// in the row: a small note that outlives a fail-open lock, such as how far the
// work has come.
func (l *Lock) Payload() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.payload)
}

// SetPayload keeps a note in the row, at most 4 KB (ErrTooLarge). ErrLockLost
// if the lock is held no longer; nothing was written then, unless it is
// ErrOutcomeUnknown too. One request.
func (l *Lock) SetPayload(ctx context.Context, payload []byte) error {
	if len(payload) > maxPayload {
		return fmt.Errorf("%w: the payload has %d bytes, at most %d are kept in a lock", repo.ErrTooLarge, len(payload), maxPayload)
	}
	payload = append([]byte{}, payload...)
	return l.hold.Note(ctx, l.l.cfg.Payload, ddb.Bytes(payload), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.payload = payload
	})
}

// Unlock releases the lock. A second call does nothing, for use with defer, and
// it works although ctx is done: it then has 3 s of its own. One request.
//
// If a caller of this locker waits for the name, the request passes the lock on to it,
// with a greater token.
//
// ErrLockLost if somebody else ended the hold, joined with ErrNotHeld if nobody
// holds the name now, or with ErrLocked (*repo.LockedError) if another does, and with
// ErrOutcomeUnknown where nothing tells whether that came before this call.
// After other errors the lock may still be held; calling again repeats it.
func (l *Lock) Unlock(ctx context.Context) (err error) {
	ctx, told := l.l.taker.Core.Observe.Call(ctx, telemetry.Mutex, "Unlock", l.Key().String)
	defer told.End(&err)
	return l.release(ctx, false)
}

func (l *Lock) release(ctx context.Context, strict bool) error {
	if !strict {
		var cancel context.CancelFunc
		ctx, cancel = ddb.Cleaning(ctx)
		defer cancel()
	}
	if err := l.turn.BeginEnd(ctx); err != nil {
		return err
	}
	defer l.turn.EndDone()
	defer l.turn.Pass(nil, nil) // also if the client panics
	next, err := l.hold.End(ctx, lock.End{As: l.turn.Unwanted, NoGrace: strict, KeepLocal: l.turn.KeepLocal()})
	var row ddb.Item
	if next != nil {
		row = l.row()
	}
	l.turn.Pass(next, row) // whatever came of it: others of this process look for themselves
	// That it was lost the hold tells: in err it may be said of what ctx has ended with.
	lost := errors.Is(l.hold.Ended(), repo.ErrLockLost)
	switch {
	case lost:
		err = errors.Join(err, l.instead())
	case err != nil && !errors.Is(err, repo.ErrOutcomeUnknown):
		return err
	}
	if err == nil || lost || l.hold.Over() {
		l.l.open.Remove(l)
	}
	return err
}

// row is what the next holder must know of the row as this one leaves it.
func (l *Lock) row() ddb.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := ddb.Item{}
	maps.Copy(row, l.turn.Item)
	if l.payload != nil {
		row[l.l.cfg.Payload] = ddb.Bytes(l.payload)
	}
	return row
}

// instead says who holds the name in place of a holder that lost it.
func (l *Lock) instead() error {
	now := l.hold.Found()
	if !now.Busy() {
		return fmt.Errorf("%w: %s", repo.ErrNotHeld, l.l.taker.Core.ItemName(l.Key()))
	}
	return lock.Locked(l.l.taker.Core, l.Key(), now)
}
