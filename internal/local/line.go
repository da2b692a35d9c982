package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// How long a lock may stay in one process while callers there wait for it: then
// it is let go, so that other processes get their turn. While others are known
// to wait, four: the longer it stays, the luckier must they be to find it free. Eight
// where that takes no luck, since they stand in the queue on the item: 8 processes of 8
// callers wait for less long then, with half as many looks; with sixteen for longer.
// Eight for transactions, too: the first of them in a process has to read what the next
// ones read ahead, which has to pay.
const (
	handoffsAlone     = 32
	handoffsContended = 4
	handoffsQueued    = 8
	streakOfLease     = 10 // a streak lasts at most this part of a lease

	// backOff is how long a process that backs off stays away, at least: the others sleep
	// between their tries.
	backOff = 10 * time.Millisecond
)

// Handoff is what the caller that has the turn on an item passes on.
type Handoff struct {
	Lock *lock.Lock // nil: it is to be taken, and the streak begins anew
	Item ddb.Item   // as stored under the lock

	unwanted lock.Ending // how the lock ends if nobody wants it
	streak   streak
	orphan   *lock.Orphan  // what a write without a verdict may have left
	holder   stored.Record // whom the caller waits for, while it has no lock
}

// Line are the callers of this process that want the locks of a table's items: for each
// item one of them goes to the table, and passes its lock on to the next.
type Line struct {
	*lock.Locker
	// BacksOff lets a process stay away for a moment from what it has let go for others.
	// Changes of items, which take milliseconds, are a fortieth slower by it and the
	// others hardly sooner at them; locks that are held for longer stay in one process
	// without it.
	BacksOff bool
	queues   Queues[any, Handoff]
}

// NewLine makes the line of a locker's callers.
func NewLine(l *lock.Locker) *Line {
	l.Contention = lock.NewContention()
	line := &Line{Locker: l}
	line.queues.Look = lookAtHolder
	if l.Core.Jumps {
		line.queues.Look = ddb.ClockLook
	}
	line.queues.Over = func(g Handoff) bool { return g.Lock != nil && (g.Lock.Expired() || g.Lock.Over()) }
	line.queues.Soon = func(g Handoff) bool { return g.Lock != nil }
	return line
}

// lookAtHolder is how often those who stand in line ask whether the hold of the one in
// front is over: it has expired, or a renewal has found it lost.
const lookAtHolder = time.Second

// Place is a caller's place in the line of its item; nil for one that does not stand
// in one.
type Place = Waiter[any, Handoff]

// endless is how long a caller stands behind one whose lock has no end by itself, which
// somebody may have broken: then it looks for itself.
const endless = 5 * time.Second

// Join takes a place; by the caller, where set, others know what they can take along.
func (l *Line) Join(raw ddb.Item, caller any) *Place {
	return l.queues.Join(l.Core.KeyText(raw), caller)
}

// Waiting is how many stand in the line of an item.
func (l *Line) Waiting(raw ddb.Item) int { return l.queues.Waiting(l.Core.KeyText(raw)) }

// Keys is how many lines there are: none when nobody is under way.
func (l *Line) Keys() int { return l.queues.Keys() }

// Enqueue waits for the turn on an item, as long as the lock of one of this
// process can last.
func (l *Line) Enqueue(ctx context.Context, key repo.Key, p *Place) (State, error) {
	patience := l.Lease + l.Skew
	if l.Lease == 0 {
		patience = endless
	}
	began := time.Now()
	state, err := p.Wait(ctx, patience)
	if p.Stood() {
		l.Core.Observe.Waited(ctx, l.Kind, telemetry.ToCaller, time.Since(began))
	}
	if err == nil && ctx.Err() != nil && state == Holding {
		pass(p, p.Handoff())
		err = ctx.Err()
	}
	if err != nil && !p.Stood() {
		return state, fmt.Errorf("%s: %w", l.Core.ItemName(key), ddb.CtxError(ctx)) // it waited for nobody
	}
	if err != nil {
		return state, ddb.Join(l.locked(key, p.Seen()), ddb.Waited(time.Since(began), ddb.CtxError(ctx)))
	}
	return state, nil
}

// InTurn takes the lock of an item: behind the callers of this process who came before,
// or, for one try, past them. next, if set, is run while the last of those has the lock.
// The key is passed on with the lock, and so must be its owner's.
func (l *Line) InTurn(ctx context.Context, key repo.Key, raw ddb.Item, how lock.Request, next func()) (*Turn, error) {
	if how.Try {
		return l.Take(ctx, key, raw, how, nil)
	}
	p := l.Join(raw, nil)
	if next != nil {
		p.WhenNext(next)
	}
	if _, err := l.Enqueue(ctx, key, p); err != nil {
		return nil, err
	}
	return l.Take(ctx, key, raw, how, p)
}

// Take makes a turn of the lock that was passed on, or takes the lock.
func (l *Line) Take(ctx context.Context, key repo.Key, raw ddb.Item, how lock.Request, p *Place) (_ *Turn, err error) {
	t := &Turn{line: l, place: p}
	var g Handoff
	if p != nil {
		g = p.Handoff()
		defer func() {
			if t.Lock == nil { // also if the client panics
				pass(p, Handoff{})
			}
		}()
	}
	if !g.usable() {
		begun := l.begin(ctx, raw, p, &how, g)
		g = Handoff{}
		if g.Lock, g.Item, err = l.Acquire(ctx, key, raw, how); err != nil {
			return nil, err
		}
		begun.since = time.Now()
		begun.contended = begun.contended || g.Lock.Waited()
		g.streak = *begun
	}
	t.Lock, t.Item, t.streak = g.Lock, g.Item, g.streak
	if p != nil {
		p.Show(Handoff{Lock: t.Lock})
	}
	if !how.Stub && !how.Row && l.Core.Hidden(t.Item) { // passed on by one who would have made it
		_ = t.Release(ctx)
		return nil, lock.NotFound(key, l.Core.Name)
	}
	return t, nil
}

// usable reports whether a lock was passed on that can still be used. One that has
// expired is released, or we would wait for ourselves.
func (g Handoff) usable() bool {
	if g.Lock == nil || g.Lock.Over() {
		return false
	}
	if g.Lock.Expired() {
		g.release()
		return false
	}
	return true
}

// begin prepares the request for a lock where before did not pass a usable one on, and
// a new streak, which hears of those for whom the request waits.
func (l *Line) begin(ctx context.Context, raw ddb.Item, p *Place, how *lock.Request, before Handoff) *streak {
	if l.BacksOff && before.streak.standsBack(time.Since(before.streak.since), l.Lease) {
		ddb.Sleep(ctx, backOff+rand.N(2*backOff))
	}
	how.Orphan = before.orphan
	text := l.Core.KeyText(raw)
	begun := &streak{contended: l.Contention.Recent(text)}
	if p != nil {
		how.OnWait = func(holder stored.Record) {
			begun.contended = true
			l.Contention.Note(text)
			p.Show(Handoff{holder: holder})
		}
	}
	return begun
}

// Holder is who keeps a caller from the item, or just which that is.
func (l *Line) Holder(key repo.Key, p *Place) error {
	if p.Behind() {
		return l.locked(key, p.Seen())
	}
	if by := p.Handoff().holder; by.Busy() {
		return lock.Locked(l.Core, key, by)
	}
	return errors.New(l.Core.ItemName(key)) // its own hold is no lock of another
}

// locked is the error of a caller that waited in the line: who holds the item.
func (l *Line) locked(key repo.Key, g Handoff) error {
	if g.Lock != nil {
		return g.Lock.Locked()
	}
	if !g.holder.Busy() { // the one in front is on its way to the item
		return fmt.Errorf("%s: %w: a caller of this process is before this one", l.Core.ItemName(key), repo.ErrLocked)
	}
	return lock.Locked(l.Core, key, g.holder)
}

// pass passes the turn on; what nobody takes is cleared away.
func pass(p *Place, g Handoff) {
	if p.Pass(g) {
		return
	}
	if g.Lock != nil { // nobody is waiting any more
		g.release()
	}
	if g.orphan != nil {
		g.orphan.Release()
	}
}

// release releases a lock that nobody wants. It takes 3 s at most, less than a
// caller of a group waits for its verdict. That it fails is no news: the lock
// ends with its lease.
func (g Handoff) release() {
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	_, _ = g.Lock.End(ctx, lock.End{As: g.unwanted, NoGrace: true})
}
