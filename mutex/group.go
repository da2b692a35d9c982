package mutex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/repo"
)

// Group is several locks, held together.
type Group struct {
	locks  []*Lock
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   []func() bool
}

// LockAll takes the locks of several names, all or none, waiting as long as
// ctx allows. Everybody takes them in one order, that of the keys, so holders
// of several cannot wait for each other in a circle. A name that is given twice
// is locked once.
//
// While it waits for one lock it extends those that it has, when half of their
// lease is over, unless heartbeats do. If one is lost all the same, it frees the
// others and begins anew. When it fails it gives back what it had, within 3 s for
// the name that it waited for and 3 s for the others together.
func (l *Locker) LockAll(ctx context.Context, names ...any) (*Group, error) {
	keys, err := l.inOrder(names)
	if err != nil {
		return nil, err
	}
	for {
		g, err := l.lockAll(ctx, keys)
		if g != nil || ctx.Err() != nil || !errors.Is(err, errLostOne) {
			return g, err
		}
	}
}

// errLostOne: a lock was lost while another was waited for.
var errLostOne = errors.New("a lock was lost while the others were taken")

func (l *Locker) lockAll(ctx context.Context, keys []repo.Key) (_ *Group, err error) {
	g, taken := &Group{}, false
	defer func() {
		if !taken { // also if the client panics
			err = errors.Join(err, g.abandon(ctx))
		}
	}()
	for _, key := range keys {
		lock, err := l.lockNext(ctx, g, key)
		if err != nil {
			return nil, err
		}
		g.locks = append(g.locks, lock)
	}
	if err := g.refresh(ctx); err != nil {
		return nil, err
	}
	taken = true
	all := nesting.Held(ctx)
	for _, lock := range g.locks {
		all = lock.inside(all)
	}
	g.ctx, g.cancel = context.WithCancelCause(all)
	for _, lock := range g.locks {
		held := lock.hold.Context()
		g.stop = append(g.stop, context.AfterFunc(held, func() { g.cancel(context.Cause(held)) }))
	}
	return g, nil
}

// lockNext waits for one lock and keeps those of the group meanwhile: beside the
// waiting, which it would lose its place to interrupt.
func (l *Locker) lockNext(ctx context.Context, g *Group, key repo.Key) (*Lock, error) {
	if err := g.refresh(ctx); err != nil {
		return nil, err
	}
	if len(g.locks) == 0 || l.taker.Every > 0 || l.taker.Lease == 0 { // heartbeats keep the others, or they have no end
		return l.Lock(ctx, key)
	}
	wait, stop := context.WithCancelCause(ctx)
	defer stop(nil) // also if the client panics
	kept := make(chan error, 1)
	go func() {
		err := fmt.Errorf("the other locks were not extended: %w", goroutine.ErrEnded) // unless keep returns
		defer func() { stop(err); kept <- err }()
		err = g.keep(wait)
	}()
	lock, err := l.Lock(wait, key)
	ended := context.Cause(wait)
	stop(nil)
	if lost := <-kept; err != nil && lost != nil && errors.Is(ended, lost) {
		return nil, lost
	}
	return lock, err
}

// keep extends the locks of the group until ctx ends, or one is lost. An extension that
// fails for another reason, which may pass, is repeated: half of the lease is left for it.
func (g *Group) keep(ctx context.Context) error {
	taker := g.locks[0].l.taker
	sleep := func() { taker.Core.Sleep(ctx, g.fresh()) }
	for sleep(); ctx.Err() == nil; sleep() {
		switch err := g.refresh(ctx); {
		case errors.Is(err, errLostOne):
			return err
		case err != nil:
			taker.Core.Sleep(ctx, taker.Lease/16)
		}
	}
	return nil
}

// fresh is how long it is until the first lock of the group has half of its lease
// behind it.
func (g *Group) fresh() time.Duration {
	first := g.locks[0].hold.Left()
	for _, lock := range g.locks {
		first = min(first, lock.hold.Left())
	}
	return first - g.locks[0].l.taker.Lease/2
}

// refresh extends the locks that have less than half of their lease left.
func (g *Group) refresh(ctx context.Context) error {
	for _, lock := range g.locks {
		length := lock.l.taker.Lease
		if length > 0 && lock.hold.Left() > length/2 {
			continue
		}
		if length == 0 && lock.Context().Err() == nil {
			continue
		}
		if err := lock.Extend(ctx); err != nil && lock.hold.Cause() != nil {
			return errors.Join(errLostOne, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Locks are the locks of the group, in the order of their keys.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Format prints the locks.
func (g *Group) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, g.locks) }

// Context is cancelled, with the cause, when the first of the locks ends.
func (g *Group) Context() context.Context { return g.ctx }

// Unlock releases all locks, several at a time, and joins what could not be
// released. One request each. It works although ctx is done: they then have 3 s
// together.
func (g *Group) Unlock(ctx context.Context) error {
	within, cancel := ddb.WithGrace(ctx, ddb.Cleanup)
	defer cancel()
	err := g.unlock(within)
	g.cancel(repo.ErrReleased)
	for _, stop := range g.stop {
		stop()
	}
	return err
}

// abandon frees what was taken of a group that did not come about.
func (g *Group) abandon(ctx context.Context) error {
	ctx, cancel := ddb.DetachedTimeout(ctx)
	defer cancel()
	return g.unlock(ctx)
}

// unlock releases all locks until ctx is done.
func (g *Group) unlock(ctx context.Context) error {
	return errors.Join(closing.Each(g.locks, func(lock *Lock) error { return lock.release(ctx, true) })...)
}

// inOrder sorts the keys of names and leaves repeated ones out.
func (l *Locker) inOrder(names []any) ([]repo.Key, error) {
	type entry struct {
		key repo.Key
		raw ddb.Item
	}
	entries := make([]entry, 0, len(names))
	for _, name := range names {
		key, raw, err := l.key(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{key, raw})
	}
	core := l.taker.Core
	// As DynamoDB orders them, so that all programs agree, in whatever language a
	// number was written. EncodeKey lets nothing through that has no order.
	order := func(a, b entry) int {
		c, _ := ddb.Compare(a.raw[core.Partition], b.raw[core.Partition])
		if c == 0 && core.Sort != "" {
			c, _ = ddb.Compare(a.raw[core.Sort], b.raw[core.Sort])
		}
		return c
	}
	slices.SortFunc(entries, order)
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return order(a, b) == 0 })
	keys := make([]repo.Key, len(entries))
	for i, e := range entries {
		keys[i] = e.key
	}
	return keys, nil
}
