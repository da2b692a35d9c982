package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/combine"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// written is what a caller passes to the next: the item as it has written it, or, by one
// that has only a version, that which is stored.
type written struct {
	item    ddb.Item
	version int64 // 0: not known
}

// place is a caller's place in the queue of its item.
type place = local.Waiter[*combine.Participant, written]

// call is one item that callers want to change.
type call struct {
	r    *engine
	key  repo.Key
	raw  ddb.Item    // the key, encoded
	text string      // the same as the key of a map
	once *typed.Once // the id under which the change is made once; nil: none

	place *place
}

func (r *engine) one(key repo.Key) (*call, error) {
	raw, err := r.table.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	text := r.table.Core.KeyText(raw)
	key = lock.OwnKey(r.table.KeyTable, key, raw)
	return &call{r: r, key: key, raw: raw, text: text}, nil
}

// update makes a change, but not from inside a change of the same item: the
// outer write would find what the inner one wrote, and run both again, and so on.
func (r *engine) update(ctx context.Context, key repo.Key, create bool, change func(context.Context, any) error, once *typed.Once) (item any, err error) {
	if change == nil {
		return item, typed.NoChange()
	}
	o, err := r.one(key)
	if err == nil {
		err = typed.Refuse(ctx, r.table, key, o.raw)
	}
	if err != nil {
		return item, err
	}
	o.once = once
	return o.change(ctx, typed.OperationOf(create), create, change)
}

// remove deletes an item.
func (r *engine) remove(ctx context.Context, key repo.Key, once *typed.Once) error {
	o, err := r.one(key)
	if err == nil {
		err = typed.Refuse(ctx, r.table, key, o.raw)
	}
	if err == nil {
		o.once = once
		_, err = o.change(ctx, "Delete", false, func(context.Context, any) error { return repo.Remove })
	}
	return err
}

// change makes a change: by version, or, with Config.Fair where others want the
// item too, under its lock.
func (o *call) change(ctx context.Context, operation string, create bool, change func(context.Context, any) error) (item any, err error) {
	r := o.r
	ctx, told := r.table.Core.Observe.Call(ctx, telemetry.Optimistic, operation, o.key.String)
	defer told.End(&err)
	defer o.once.Begin(ctx, r.table.Core, o.raw, &err)()
	run := typed.Inside(r.table, o.raw, change)
	if r.fair == nil {
		return o.inLine(ctx, create, run)
	}
	if !r.contention.Recent(o.text) {
		item, err = o.inLine(ctx, create, run)
		if !errors.Is(err, lock.ErrContended) {
			return item, err
		}
		r.contention.Note(o.text)
	}
	told.Delegated()
	return r.fair(ctx, o.key, create, run, o.once)
}

// inLine makes a change by version when it is the caller's turn.
func (o *call) inLine(ctx context.Context, create bool, change func(context.Context, any) error) (item any, err error) {
	var part *combine.Participant
	var p *place
	if o.r.combine {
		part = combine.NewParticipant(ctx, create, change, func() error {
			if p.Behind() {
				return o.behind()
			}
			return errors.New(o.r.table.Core.ItemName(o.key))
		})
		part.Once = o.once
	}
	p = o.r.queues.Join(o.text, part)
	o.place = p
	began := time.Now()
	switch state, err := p.Wait(ctx, local.Patience); {
	case err != nil:
		return item, ddb.Join(o.behind(), ddb.Waited(time.Since(began), ddb.CtxError(ctx)))
	case state == local.Drawn:
		return part.Await()
	case o.r.combine:
		go o.lead(part)
		return part.Await()
	}
	handed := written{} // what the next one gets, also if change panics
	defer func() { p.Pass(handed) }()
	item, handed.item, err = o.run(ctx, p.Handoff().item, typed.Request{Create: create, Change: change, Once: o.once})
	return item, err
}

// stand waits in the line of an item. pass ends the turn, and says which version is
// stored then, 0 if that is not known; stored is what the caller before has said.
//
// Of two that write the same version one is refused in any case. One that overtook
// another in doubt would take away the evidence of what became of it, and be in doubt
// itself without need: that its version was gone before it was sent shows nowhere later.
func (r *engine) stand(ctx context.Context, key repo.Key) (stored int64, pass func(stored int64), err error) {
	o, err := r.one(key)
	if err != nil {
		return 0, nil, err
	}
	p := r.queues.Join(o.text, nil)
	began := time.Now()
	if _, err := p.Wait(ctx, local.Patience); err != nil {
		return 0, nil, ddb.Join(o.behind(), ddb.Waited(time.Since(began), ddb.CtxError(ctx)))
	}
	before := p.Handoff()
	stored = max(before.version, typed.Version(r.table.Core, before.item))
	return stored, func(stored int64) { p.Pass(written{version: stored}) }, nil
}

// behind is what a caller waits for that stands in the queue of its process.
func (o *call) behind() error {
	return fmt.Errorf("%s: a caller of this process is before this one", o.r.table.Core.ItemName(o.key))
}

// run makes a change, starting from what the caller before has left, or from
// what is kept.
func (o *call) run(ctx context.Context, left ddb.Item, call typed.Request) (item any, after ddb.Item, err error) {
	call.Keep = func() bool { return o.r.cache.items != nil || o.place.Waiting() > 0 }
	call.From = left
	if left == nil {
		call.From = o.r.cache.get(o.text)
	}
	item, trace, err := cas.Run(ctx, o.r.table, &o.r.policy, o.key, o.raw, call)
	o.r.cache.learn(o.text, trace)
	return item, trace.After, err
}

// lead makes the changes of the first caller and of those that wait behind it
// with one write. It runs on its own, so that no caller's end ends it.
func (o *call) lead(first *combine.Participant) {
	p := o.place
	var last written
	defer func() { p.Pass(last) }()
	b := combine.NewGroup(o.r.table, telemetry.Optimistic, first, func() *combine.Participant {
		next := p.Draw(func(c *combine.Participant) bool { return c != nil && c.Create == first.Create })
		if next == nil {
			return nil
		}
		return next.Caller
	})
	last.item = o.all(b, first.Create, p.Handoff().item)
}

// all runs a group, and those of its parts that must be alone, to their end.
func (o *call) all(b *combine.Group, create bool, from ddb.Item) (after ddb.Item) {
	var err error
	if ended := goroutine.Apart(func() {
		_, after, err = o.run(b.Context(), from, typed.Request{Create: create, Edit: b.Edit, Made: b.Made, Begin: b.Begin, Count: b.Count})
	}); ended != nil {
		err = lock.NoVerdict(ended)
	}
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		after = nil
	}
	for _, p := range b.Conclude(err) {
		after = o.all(combine.NewGroup(o.r.table, telemetry.Optimistic, p, nil), create, after)
	}
	return after
}
