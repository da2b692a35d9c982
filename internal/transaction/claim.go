package transaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// What the items of a transaction claim, by their unique attributes, is found when it
// commits: the claims of an item as it was read, and as it is to be. Where they differ,
// the rows of the claims are parts of the request. So a value goes from one item of the
// transaction to another in one part, whatever was done to them and in which order.
//
// A claim is somebody's as long as the item that it names has the value. One that has lost
// its item, by a time to live or by a program that knows no claims, is taken away by a
// transaction that demands the item as it was read, and the first one is sent again.

// claim is what a transaction does to the row of a value. It is a rows.Action.
type claim struct {
	stored.Claim
	rows.Traceless
	core  *protocol.Core
	owner *entry   // the item that is to have the value; nil: none is
	from  []*entry // those that had it
	found ddb.Item // the row, which is another item's; nil: it is not known to be
}

var _ rows.Action = (*claim)(nil)

// addClaims adds the claims that the items of the commit take and give up.
func (m *commit) addClaims() error {
	at := map[string]*claim{}
	for _, p := range m.parts {
		if len(p.core.Unique.All) == 0 || p.blind != nil || !p.changed() || !p.core.ClaimsDiffer(p.entry.image, p.now) {
			continue
		}
		for _, of := range p.core.Claims(p.entry.image) {
			c := claimAt(at, p.core, of)
			c.from = append(c.from, p.entry)
		}
		for _, of := range p.core.Claims(p.now) {
			c := claimAt(at, p.core, of)
			if c.owner != nil {
				return fail(p.failure(c.notUnique(p.entry, c.owner.key)))
			}
			c.owner = p.entry
		}
	}
	for _, c := range at {
		if c.owner == nil || !slices.Contains(c.from, c.owner) {
			m.claims = append(m.claims, c)
		}
	}
	slices.SortFunc(m.claims, func(a, b *claim) int { return cmp.Compare(a.place(), b.place()) })
	for _, c := range m.claims {
		m.rows = append(m.rows, c.row())
	}
	slices.SortStableFunc(m.rows, func(a, b *rows.Row) int { return cmp.Compare(a.Place(), b.Place()) })
	return nil
}

func claimAt(at map[string]*claim, core *protocol.Core, of stored.Claim) *claim {
	c := &claim{Claim: of, core: core}
	if known := at[c.place()]; known != nil {
		return known
	}
	at[c.place()] = c
	return c
}

func (c *claim) place() string { return rows.Place(c.core.Table.Table, c.Key) }

// row is the claim as a part of the request. Errors name the item that it is of.
func (c *claim) row() *rows.Row {
	of := c.owner
	if of == nil {
		of = c.from[0]
	}
	return &rows.Row{Table: c.core.Table, Key: of.key, Raw: c.Key, Action: c, Size: protocol.Size(c.core.RowOf(c.Claim, of.raw))}
}

// Write takes the claim, or gives it up where it is that of the transaction's items: one
// that is another's stays.
func (c *claim) Write(w *ddb.Write) (part types.TransactWriteItem, some bool, err error) {
	if c.owner == nil && c.found != nil {
		return part, false, nil
	}
	holders := c.from
	if c.owner != nil {
		holders = append([]*entry{c.owner}, c.from...) // its own, from before it was deleted without the library
	}
	free := []string{"(attribute_not_exists(", w.Name(c.core.Partition), ")"}
	for _, e := range holders {
		free = append(free, " OR ", w.Name(stored.ClaimAttribute), " = ", w.Value(c.By(e.raw)))
	}
	w.If(append(free, ")")...)
	if c.owner == nil {
		return ddb.DeleteOf(w.Delete(c.Key)), true, nil
	}
	return w.Put(c.core.RowOf(c.Claim, c.owner.raw)), true, nil
}

// Refused notes whose the row is.
func (c *claim) Refused(image ddb.Item) error {
	c.found = image
	return nil
}

// notUnique is the error where another item has the value.
func (c *claim) notUnique(e *entry, owner repo.Key) error {
	return &repo.NotUniqueError{Table: c.core.Name, Key: e.key, Field: c.Unique.Name, Owner: owner}
}

// resolveClaims makes ready for another request where claims that it takes were found to
// be those of other items: an item that has the value is the error.
func (m *commit) resolveClaims(ctx context.Context) error {
	for _, c := range m.claims {
		if c.owner == nil || c.found == nil {
			continue
		}
		row := c.found
		c.found = nil
		if err := m.resolve(ctx, c, row); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf reads the item that a claim names; the error is that it has the value.
func (m *commit) ownerOf(ctx context.Context, c *claim, row ddb.Item) (owner owner, err error) {
	_, owner.raw, err = c.core.ClaimOf(row)
	if err != nil {
		return owner, fail(c.owner.failure(c.core.Classify(fmt.Errorf("claim of %q: %w", c.Unique.Name, err))))
	}
	read := c.core.Read(ctx, owner.raw, ddb.Options{Holding: len(m.held) > 0})
	owner.image = read.Item
	switch {
	case read.Err != nil:
		return owner, fail(c.owner.failure(lock.Unwritten(c.core.Table, c.owner.key, read.Err)))
	case c.core.Claimed(read.Item, c.Key):
		key, _ := c.core.KeyOf(owner.raw).(repo.Key)
		return owner, fail(c.owner.failure(c.notUnique(c.owner, key)))
	}
	return owner, nil
}

// owner is an item that a claim names, as it was read.
type owner struct{ raw, image ddb.Item }

// resolve decides about one of them.
func (m *commit) resolve(ctx context.Context, c *claim, row ddb.Item) error {
	owner, err := m.ownerOf(ctx, c, row)
	if err != nil {
		return err
	}
	res, err := free(ctx, c.core.Table, row, owner.raw, owner.image)
	if err != nil {
		return err
	}
	switch _, last := m.call.refused(); {
	case res.Outcome == ddb.Refused && !ddb.Conflicted(res.Err) && !ddb.Throttled(res.Err):
		return fail(c.owner.failure(lock.Unwritten(c.core.Table, c.owner.key, res.Err)))
	case last, ctx.Err() != nil:
		return m.call.exhausted([]*entry{c.owner})
	case res.Outcome != ddb.Applied: // others were at one of both, or nobody knows: the next request tells
		m.call.sleep(ctx, 0)
	}
	return nil
}

// refusedByClaims reports whether it was claims alone that have refused a request.
func (m *commit) refusedByClaims(res ddb.Result) bool {
	if m.answered(res) != lockless.Condition {
		return false
	}
	some := false
	for i, image := range res.Images {
		if !image.Failed {
			continue
		}
		n := i - len(m.parts)
		if n < 0 || n >= len(m.sent) {
			return false
		}
		c, ok := m.sent[n].Action.(*claim)
		if !ok {
			return false
		}
		some, c.found = true, image.Item
	}
	return some
}

// bar makes a request impossible that claims alone have refused behind an attempt without
// an answer: its items were as it demands them, so it was not applied, but it could be when
// the claims are free. An id that is nobody's moves one of its items; another request may
// be sent then. Where there is no item that could be moved, nobody knows.
func (m *commit) bar(ctx context.Context) (lockless.Step, error) {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for _, p := range m.parts {
		if !p.known || p.ending != nil || len(p.entry.image) == 0 {
			continue
		}
		w := p.core.NewWrite()
		w.Set(p.core.Attr.Writers, p.core.Push(protocol.NewMark(), p.entry.image))
		p.demand(w)
		in, err := w.Update(p.raw)
		if err == nil && p.core.Update(ctx, in, ddb.Options{}).Outcome == ddb.Applied {
			p.known, p.entry.image = false, nil
			return lockless.SendOther, errAgain
		}
	}
	return lockless.FindOut, nil
}

// othersClaims is the error where a transaction that was not applied was refused by the
// claim of another item; nil: it was not.
func (m *commit) othersClaims(ctx context.Context) error {
	for _, c := range m.claims {
		if c.owner == nil || c.found == nil {
			continue
		}
		if _, why := m.ownerOf(ctx, c, c.found); errors.Is(why, repo.ErrNotUnique) {
			return why
		}
	}
	return nil
}

// free takes away a claim whose item, as it was read, has not the value: in a transaction
// that demands that it is so still.
func free(ctx context.Context, t *stored.Table, row, owner, image ddb.Item) (res ddb.Result, err error) {
	client, ok := t.Client.(ddb.Transactor)
	if !ok {
		return res, noTransactions()
	}
	writes, err := t.FreeClaim(row, owner, image)
	if err != nil {
		return res, err
	}
	return t.Transact(ctx, client, ddb.Options{Conflicts: true}, writes...), nil
}

func noTransactions() error {
	return fmt.Errorf("%w: the client has no TransactWriteItems: a transaction of several items needs it", repo.ErrNoTransactions)
}
