package typed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	rows "github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Once is the id of an operation that is made once, for one call, and whether the
// call has found it. The id is written with the change, so that whoever reads the
// item knows that the change was made. A nil Once is that of an operation without
// an id, which is made each time.
type Once struct {
	text      string // the id as it was given
	id, print protocol.OnceID
	found     atomic.Bool

	mu   sync.Mutex
	rows map[string]beside // guarded by mu: by item
}

// In reports whether an item remembers the id, and notes that: the item itself, or the row
// beside it that Consult has read.
func (o *Once) In(core *protocol.Core, item ddb.Item) bool {
	if o == nil {
		return false
	}
	found := o.recall(core, item) == protocol.Made
	o.found.Store(found)
	return found
}

// recall is what an item, and the row beside it, remember of the id.
func (o *Once) recall(core *protocol.Core, item ddb.Item) protocol.Memory {
	return core.Recall(item, o.id, o.print, o.beside(core, item).entries...)
}

// Refuse is the error where an item remembers the id for another request.
func (o *Once) Refuse(core *protocol.Core, item ddb.Item) error {
	if o == nil || o.recall(core, item) != protocol.MadeOtherwise {
		return nil
	}
	return fmt.Errorf("%w: the operation %q was made for a request with another fingerprint; nothing of this one was written", repo.ErrMismatch, o.text)
}

// unread is err, but where it is of the item that cannot be read, with repo.ErrDone if that
// remembers the id: the change was made, by this call or one before.
func (o *Once) unread(ctx context.Context, core *protocol.Core, key ddb.Item, err error) error {
	var unreadable *repo.ItemError
	if o == nil || !errors.As(err, &unreadable) || errors.Is(err, repo.ErrDone) {
		return err
	}
	if image, failed := core.Get(ctx, core.Key(key)); failed == nil && !core.Hidden(image) && o.Shows(ctx, core, image) {
		err = fmt.Errorf("%w: %w", repo.ErrDone, err)
	}
	return err
}

// Note notes whether another call in place of this one has found the id.
func (o *Once) Note(found bool) { o.found.Store(found) }

// Remember adds to the difference of a write, that is based on an item, what makes
// the item remember the id.
func (o *Once) Remember(core *protocol.Core, item ddb.Item, d *ddb.Diff) error {
	if o == nil {
		return nil
	}
	ids, err := rows.Remember(core, item, o.id, o.print, core.Epoch(core.Clock()), o.beside(core, item).move)
	if err != nil {
		return err
	}
	d.Set, d.Remove = append(d.Set, ids.Set...), append(d.Remove, ids.Remove...)
	return nil
}

// Kept is what an item remembers of the id, and of the fingerprint; zero: there is none.
func (o *Once) Kept() (id, fingerprint protocol.OnceID) { return o.id, o.print }

// Shows is In, behind Consult: a row that cannot be read shows nothing.
func (o *Once) Shows(ctx context.Context, core *protocol.Core, image ddb.Item) bool {
	return o.Consult(ctx, core, image) == nil && o.In(core, image)
}

// Shown reports whether an item is evidence that a write was applied: it has the
// write's id, or remembers that of the operation, if there is one.
func (o *Once) Shown(ctx context.Context, core *protocol.Core, id protocol.WriteID, image ddb.Item) bool {
	return core.Wrote(image, id) || o.Shows(ctx, core, image)
}

// OnceCalls are the calls of a view with one id.
type OnceCalls struct {
	ID          string
	Fingerprint []byte // of the request; nil: none
	// OfTransaction says that they are a whole transaction, whose id is no item's, whatever
	// its text.
	OfTransaction bool

	repeated atomic.Bool
}

// With is the same id with the fingerprint of a request.
func (c *OnceCalls) With(fingerprint []byte) OnceCalls {
	return OnceCalls{ID: c.ID, OfTransaction: c.OfTransaction, Fingerprint: append([]byte{}, fingerprint...)}
}

// Do makes one call of the view. The calls of no view have no id.
func (c *OnceCalls) Do(call func(*Once) error) error {
	if c == nil {
		return call(nil)
	}
	if c.ID == "" {
		return fmt.Errorf("%w: the id of Once is empty: use what names the message or request, and stays when it comes again", repo.ErrConfig)
	}
	id := protocol.NewOnceID(c.ID)
	if c.OfTransaction {
		id = protocol.NewTransactionID(c.ID)
	}
	once := &Once{text: c.ID, id: id}
	switch {
	case c.Fingerprint != nil && len(c.Fingerprint) == 0:
		return fmt.Errorf("%w: the fingerprint of a request is empty: use what differs where the request does, such as its body", repo.ErrConfig)
	case c.Fingerprint != nil:
		once.print = once.id.Fingerprint(c.Fingerprint)
	}
	defer func() { c.repeated.Store(once.found.Load()) }()
	return call(once)
}

// Make is Do for a call that makes an item.
func (c *OnceCalls) Make(call func(*Once) (any, error)) (item any, err error) {
	err = c.Do(func(once *Once) (err error) {
		item, err = call(once)
		return err
	})
	return item, err
}

// Found reports whether the call has found its id, as far as it was looked for.
func (o *Once) Found() bool { return o != nil && o.found.Load() }

// Repeated reports whether the call that ended last has found its id.
func (c *OnceCalls) Repeated() bool { return c.repeated.Load() }

// ChangeOnce is Change, but where the item remembers the id the change does not
// run, and the item is as it is. The edit of a change that runs remembers the id,
// also where it changes nothing else.
func ChangeOnce(ctx context.Context, t *Table, from Snapshot, change func(context.Context, any) error, once *Once) (Edit, error) {
	core := t.Core
	made, err := once.Made(ctx, core, from.base(), from.Raw)
	if err != nil {
		return Edit{}, fmt.Errorf("%s: %w", core.ItemName(t.KeyOf(from.Item)), err)
	}
	if made {
		if core.Hidden(from.Raw) { // made, and deleted by an event since
			return Edit{}, lock.NotFound(t.KeyOf(from.Item), core.Name)
		}
		return Edit{Item: from.Item, After: from.Before}, nil
	}
	edit, err := Change(ctx, t, from, change)
	if once == nil || err != nil || edit.Remove {
		return edit, err
	}
	if edit.Diff.Empty() { // that the item remembers the id is a change
		if err = CheckCount(t, from.Item); err != nil {
			return Edit{}, err
		}
		edit.stamp(t, false)
	}
	if err = once.MakeRoom(ctx, core, from.base(), from.Raw, false); err == nil {
		err = once.Remember(core, from.Raw, &edit.Diff)
	}
	if err == nil {
		err = core.CheckSize(from.Raw, edit.Diff)
	}
	if err != nil {
		return Edit{}, fmt.Errorf("%s: %w", core.ItemName(t.KeyOf(from.Item)), err)
	}
	return edit, nil
}
