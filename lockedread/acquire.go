package lockedread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// taking says how an acquisition is meant.
type taking struct {
	once   bool // one try
	create bool // also a key without an item
}

// stubLife is how long after its lease DynamoDB's TTL may remove a stub that
// everybody forgot.
const stubLife = 24 * time.Hour

// acquisition is one call of Acquire. A request that had no answer is not sent
// again: every try has an id of its own, for a late copy of an earlier one must
// not pass for the hold that we have. Tries without an answer are remembered:
// their lock is ours if they landed.
type acquisition[T any] struct {
	*Locker[T]
	taking
	guard.Turn
	id     string               // of the present try
	lost   map[string]time.Time // tries without an answer, by id: when they were sent
	resend ddb.Backoff
	watch  watch
}

func (l *Locker[T]) acquire(ctx context.Context, key repo.Key, how taking) (*Held[T], error) {
	raw, err := l.table.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	a := &acquisition[T]{Locker: l, taking: how, resend: ddb.Backoff{Min: l.cfg.Wait.Min, Max: l.cfg.Wait.Max}, Turn: guard.Turn{
		Core: l.core, Key: key, Raw: raw,
		Settings: guard.Settings{Wait: l.cfg.Wait, Skew: l.cfg.ClockSkew, Fail: how.once, Clock: l.clock},
	}}
	defer a.Done(ctx)
	stub := false
	for {
		held, again, err := a.try(ctx, stub)
		switch {
		case held != nil:
			return held, nil
		case errors.Is(err, errAgain):
			ddb.Pause(ctx, a.resend.Next(time.Now(), 0, time.Time{}))
		case err != nil:
			a.abandon(ctx)
			return nil, a.Ended(ctx, err)
		default:
			stub = again == asStub
		}
	}
}

// errAgain asks for another try after one that had no answer.
var errAgain = errors.New("again")

// next says how the next try goes.
type next int

const (
	asItem next = iota
	asStub
)

// try sends one acquire; (nil, next, nil) asks for another.
func (a *acquisition[T]) try(ctx context.Context, stub bool) (*Held[T], next, error) {
	now := a.clock()
	a.id = ddb.NewID(a.cfg.Owner)
	t := ddb.Taking{ID: a.id, Now: now, Until: now.Add(a.cfg.Lease), Lease: a.cfg.Lease, Skew: a.cfg.ClockSkew,
		Hidden: a.create, Clockless: a.cfg.Clockless, Watched: a.watch.ripe(now)}
	in := a.core.Acquire(a.Raw, t)
	if stub {
		in = a.core.Stub(a.Raw, t, t.Until.Add(stubLife))
	}
	res := a.core.Update(ctx, in, ddb.Options{Timeout: a.cfg.Lease / 3, NoSettle: true, Once: true})
	switch res.Outcome {
	case ddb.Applied:
		return a.hold(res.Item, res.Sent.Add(a.cfg.Lease))
	case ddb.Condition:
		return a.refused(ctx, res, stub)
	case ddb.Unknown:
		if a.lost == nil {
			a.lost = map[string]time.Time{}
		}
		a.lost[a.id] = res.Sent
		if ctx.Err() == nil && (res.Limit == 0 || len(a.lost) < res.Limit) {
			return nil, asItem, errAgain
		}
		// Whether the lock was taken is not known, but no data is in doubt, and
		// abandon gives it back: the caller has certainly not changed anything.
		return nil, asItem, repo.Classify(fmt.Errorf("item %v: no answer to the request for its lock: %w", a.Key, res.Err))
	}
	return nil, asItem, repo.Classify(res.Err)
}

// refused decides what a failed condition means.
func (a *acquisition[T]) refused(ctx context.Context, res ddb.Result, stub bool) (*Held[T], next, error) {
	image := res.Image
	l, err := a.Lock(image)
	if err != nil {
		return nil, asItem, err
	}
	sent, landed := a.lost[l.By]
	if l.By == a.id {
		sent, landed = res.Sent, true
	}
	switch {
	case landed:
		// An earlier request took the lock: it is ours, from when that was sent.
		a.id = l.By
		return a.hold(image, sent.Add(a.cfg.Lease))
	case stub:
		return nil, asItem, nil // the item came into being meanwhile
	case a.core.Absent(image) && a.create:
		return nil, asStub, nil
	case a.core.Absent(image), !a.create && a.core.Hidden(image):
		return nil, asItem, guard.NotFound(a.Key, a.core.Table)
	}
	if !l.Busy() {
		// What was watched has gone and the lock is free. To insist on the gone
		// hold would be to wait for ever.
		a.watch = watch{}
		return nil, asItem, nil
	}
	if a.cfg.Clockless {
		a.watch.see(image, l, a.core, a.cfg.Lease, a.clock())
	}
	return nil, asItem, a.Sleep(ctx, l)
}

// hold makes the handle of a lock that was taken; end is when others may take
// over, on the own clock.
func (a *acquisition[T]) hold(raw ddb.Item, end time.Time) (*Held[T], next, error) {
	l, err := a.Lock(raw)
	if err == nil && l.Held == 0 {
		err = fmt.Errorf("%w: item %v: attribute %q is missing", repo.ErrSchema, a.Key, a.core.Attr.LockHeld)
	}
	if err != nil {
		return nil, asItem, err
	}
	var start guard.Start[T]
	if a.core.Hidden(raw) {
		start, err = guard.Fresh(a.table, a.Raw)
		start.Raw = raw
	} else {
		start, err = guard.Existing(a.table, raw)
	}
	h := newHeld(a, l, start, end)
	if err != nil {
		// The item does not fit the type: give it back rather than block it.
		return nil, asItem, errors.Join(err, h.Release(context.Background()))
	}
	return h, asItem, nil
}

// abandon frees a lock that may have been taken by a try without an answer:
// whoever asked for it is told that it was not.
func (a *acquisition[T]) abandon(ctx context.Context) {
	if len(a.lost) == 0 {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	for id := range a.lost {
		a.undo(ctx, id)
	}
}

// undo releases the hold of an id, whatever its token; a stub is deleted.
func (a *acquisition[T]) undo(ctx context.Context, id string) {
	if a.create {
		w := a.core.NewWrite()
		w.IfEqual(a.core.Attr.LockedBy, ddb.Text(id))
		w.IfExists(a.core.Attr.LockStub)
		res := a.core.Delete(ctx, w.Delete(a.Raw), ddb.Options{NoSettle: true})
		if l, err := a.Lock(res.Image); res.Outcome == ddb.Applied || err != nil || l.By != id {
			return
		}
	}
	w := a.core.NewWrite()
	w.Unlock()
	w.IfEqual(a.core.Attr.LockedBy, ddb.Text(id))
	if in, err := w.Update(a.Raw); err == nil {
		a.core.Update(ctx, in, ddb.Options{NoSettle: true})
	}
}

// cleanup bounds requests that free a lock after its caller's context ended.
const cleanup = 3 * time.Second

// detached keeps the values of a context but not its end.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanup)
}
