package optimistic

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/batch"
	"github.com/dynahold/dynahold/internal/baton"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// patience is how long a caller stands behind one of its own process that does
// not move. The line is there to spare both of them a conflict; nobody relies
// on it.
const patience = 250 * time.Millisecond

// known is what a caller hands to the next: the item as it has written it.
type known struct{ item ddb.Item }

// place is a caller's place in the line of its item.
type place[T any] = baton.Place[*batch.Part[T], known]

// change makes a change: by version, or, with Config.Fair where others want the
// item too, under its lock.
func (r *Repository[T]) change(ctx context.Context, key repo.Key, create bool, change func(context.Context, *T) error) (item T, err error) {
	if r.fair == nil {
		return r.inLine(ctx, key, create, change)
	}
	raw, err := r.table.EncodeKey(key)
	if err != nil {
		return item, err
	}
	text := r.table.Core().KeyText(raw)
	if !r.rivals.Lately(text) {
		item, err = r.inLine(ctx, key, create, change)
		if !errors.Is(err, guard.ErrGaveWay) {
			return item, err
		}
		r.rivals.Note(text)
	}
	if create {
		return r.fair.Upsert(ctx, key, change)
	}
	return r.fair.Update(ctx, key, change)
}

// inLine makes a change by version when it is the caller's turn.
func (r *Repository[T]) inLine(ctx context.Context, key repo.Key, create bool, change func(context.Context, *T) error) (item T, err error) {
	if change == nil {
		return item, guard.NoChange()
	}
	raw, err := r.table.EncodeKey(key)
	if err != nil {
		return item, err
	}
	key = guard.OwnKey(r.table.KeyTable, key, raw)
	one := &one[T]{r: r, key: key, raw: raw, text: r.table.Core().KeyText(raw)}
	mark := guard.Within{By: r, Key: one.text}
	if mark.In(ctx) {
		item, _, err = guard.Run(ctx, r.table, &r.policy, key, raw, guard.Call[T]{Create: create, Change: change})
		return item, err
	}
	change = guard.Mark(mark, change)
	var part *batch.Part[T]
	if r.combine {
		part = batch.NewPart(ctx, create, change, nil)
	}
	p := r.lines.Join(one.text, part)
	one.place = p
	switch state, err := p.Wait(ctx, patience); {
	case err != nil:
		return item, ddb.CtxError(ctx)
	case state == baton.Drawn:
		return part.Await()
	case r.combine:
		go one.lead(part)
		return part.Await()
	}
	handed := known{} // what the next one gets, also if change panics
	defer func() { p.Pass(handed) }()
	item, handed.item, err = one.run(ctx, p.Baton().item, guard.Call[T]{Create: create, Change: change})
	return item, err
}

// one is one item that callers want to change.
type one[T any] struct {
	r    *Repository[T]
	key  repo.Key
	raw  ddb.Item // the key, encoded
	text string   // the same as the key of a map

	place *place[T]
}

// run makes a change, starting from what the caller before has left, or from
// what is kept.
func (o *one[T]) run(ctx context.Context, left ddb.Item, call guard.Call[T]) (item T, after ddb.Item, err error) {
	call.Keep = func() bool { return o.r.warm.items != nil || o.place.Waiting() > 0 }
	call.From = left
	if left == nil {
		call.From = o.r.warm.get(o.text)
	}
	item, course, err := guard.Run(ctx, o.r.table, &o.r.policy, o.key, o.raw, call)
	o.r.warm.learn(o.text, course)
	return item, course.After, err
}

// lead makes the changes of the first caller and of those that wait behind it
// with one write. It runs on its own, so that no caller's end ends it.
func (o *one[T]) lead(first *batch.Part[T]) {
	p := o.place
	var last known
	defer func() { p.Pass(last) }()
	b := batch.New(o.r.table, first, func() *batch.Part[T] {
		next := p.Draw(func(c *batch.Part[T]) bool { return c.Create == first.Create })
		if next == nil {
			return nil
		}
		return next.Caller
	})
	last.item = o.all(b, first.Create, p.Baton().item)
}

// all runs a batch, and those of its parts that must be alone, to their end.
func (o *one[T]) all(b *batch.Batch[T], create bool, from ddb.Item) (after ddb.Item) {
	_, after, err := o.run(b.Context(), from, guard.Call[T]{Create: create, Edit: b.Edit, Begin: b.Begin, Count: b.Count})
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		after = nil
	}
	for _, p := range b.Conclude(err) {
		after = o.all(batch.New(o.r.table, p, nil), create, after)
	}
	return after
}
