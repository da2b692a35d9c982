package transaction

import (
	"context"
	"fmt"
	"slices"

	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/repo"
)

// Goroutines of one closure. Operations on one item follow each other. Those inside a
// change of one item may wait for another, but not in a circle.

// wait says that an operation inside a change of one item waits for another item.
type wait struct{ inside, on *entry }

// enter begins an operation on the item, which ends with leave.
func (e *entry) enter(ctx context.Context, c *call) error {
	if e.op.TryLock() {
		return nil
	}
	around := c.around(ctx)
	if slices.Contains(around, e) {
		return nesting.Own(e.item(), e.key)
	}
	if len(around) == 0 {
		return e.op.Lock(ctx)
	}
	if !c.beginWait(around, e) {
		return fmt.Errorf("%s: %w: the change of another item waits for this one, and this one's change for that: end one before the other begins", e.core.ItemName(e.key), repo.ErrNested)
	}
	defer c.endWait(around, e)
	return e.op.Lock(ctx)
}

// beside runs do if no operation of the closure is at the item: to wait for one with
// others in hand could be to wait for each other. One that is there makes the item known
// by itself.
func (e *entry) beside(ctx context.Context, c *call, do func() error) error {
	if e.op.TryLock() {
		defer e.leave()
		return do()
	}
	if slices.Contains(c.around(ctx), e) {
		return nesting.Own(e.item(), e.key)
	}
	return nil
}

func (e *entry) leave() { e.op.Unlock() }

func (e *entry) item() nesting.Item { return nesting.ItemOf(e.core.Table, e.raw) }

// inside is a change of the item that can be told from an operation beside it: by its
// context, and, where a call inside it uses another one, by its goroutine.
func (e *entry) inside(change func(context.Context, any) error) func(context.Context, any) error {
	return func(ctx context.Context, item any) error {
		e.changer.Store(goroutine.Number())
		defer e.changer.Store(0)
		return nesting.Change(ctx, e.item(), func(ctx context.Context) error { return change(ctx, item) })
	}
}

// around are the items inside whose changes an operation is.
func (c *call) around(ctx context.Context) []*entry {
	items, mine := nesting.Changing(ctx), goroutine.Number()
	return c.inOrder(func(e *entry) bool {
		changer := e.changer.Load()
		return changer != 0 && changer == mine || slices.ContainsFunc(items, e.item().Is)
	})
}

// beginWait notes for which item an operation waits; false if that would close a circle.
func (c *call) beginWait(around []*entry, on *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	reached := []*entry{on}
	for i := 0; i < len(reached); i++ {
		if slices.Contains(around, reached[i]) {
			return false
		}
		for _, w := range c.waits {
			if w.inside == reached[i] && !slices.Contains(reached, w.on) {
				reached = append(reached, w.on)
			}
		}
	}
	for _, e := range around {
		c.waits = append(c.waits, wait{e, on})
	}
	return true
}

func (c *call) endWait(around []*entry, on *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range around {
		i := slices.Index(c.waits, wait{e, on})
		c.waits = slices.Delete(c.waits, i, i+1)
	}
}
