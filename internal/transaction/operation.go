package transaction

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Operation is a transaction that is applied once, under an operation id. Every item
// that it writes remembers the id; one that does is evidence for all of them.
type Operation struct{ calls typed.OnceCalls }

// NewOperation makes one. Its id is no other operation's on an item, whatever the
// text of that is: an item may have been changed under the same text alone.
func NewOperation(id string) *Operation {
	return &Operation{typed.OnceCalls{ID: id, OfTransaction: true}}
}

// WithFingerprint is the same operation with the fingerprint of its request.
func (o *Operation) WithFingerprint(fingerprint []byte) *Operation {
	return &Operation{o.calls.With(fingerprint)}
}

// Run is the function Run, but nothing is written if an item that the closure touches
// remembers the id.
func (o *Operation) Run(ctx context.Context, cfg Config, fn func(context.Context, *Tx) error) error {
	return o.calls.Do(func(once *typed.Once) error {
		made, err := run(ctx, cfg, once, fn)
		if made || err == nil {
			once.Note(made)
			return nil
		}
		return err
	})
}

// Repeated reports whether the run that ended last has found its id.
func (o *Operation) Repeated() bool { return o.calls.Repeated() }

// errMade ends a run that has found its id.
var errMade = errors.New("the transaction was applied before, under the same id: nothing more is done")

// refuseMade ends a run where what was read of an item shows that the transaction was
// applied before: whatever its closure would do then, or return.
func (tx *Tx) refuseMade(ctx context.Context, e *entry) error {
	own := tx.call.landed(e.core, e.image)
	switch err := e.refuse(ctx, tx.call.once, e.image); {
	case own != nil || err == nil:
	case errors.Is(err, repo.ErrMismatch):
		return tx.Doom(fail(e.failure(err)))
	default:
		return tx.failed(err)
	}
	if own == nil && !tx.call.once.In(e.core, e.image) {
		return nil
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.made, tx.own = true, own
	return errMade
}

// refuse is the error where an item, or a row beside it, remembers an id for another
// request.
func (e *entry) refuse(ctx context.Context, once *typed.Once, image ddb.Item) error {
	err := once.Consult(ctx, e.core, image)
	if err == nil {
		err = once.Refuse(e.core, image)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.core.ItemName(e.key), err)
	}
	return nil
}

// made reports whether the item remembers an id of a single call, as it is stored or as the
// closure has left it.
func (e *entry) made(ctx context.Context, once *typed.Once) (bool, error) {
	made, err := once.Made(ctx, e.core, e.image, e.now)
	if err != nil {
		err = fmt.Errorf("%s: %w", e.core.ItemName(e.key), err)
	}
	return made, err
}

// makeRoom makes room for the id of the whole on the items that are full.
func (m *commit) makeRoom(ctx context.Context) error {
	for _, p := range m.parts {
		now := p.now
		if p.blind != nil {
			now = p.entry.image
		}
		if !p.known || !p.changed() || p.removed() {
			continue
		}
		err := m.call.once.MakeRoom(ctx, p.core, p.entry.image, now, false)
		if err == nil && p.blind != nil {
			err = p.blind.once.MakeRoom(ctx, p.core, p.entry.image, now, false)
		}
		if err != nil {
			return fail(p.failure(err))
		}
	}
	return nil
}

// remembering is what an item is with some ids.
func (e *entry) remembering(item ddb.Item, ids ...*typed.Once) (ddb.Item, error) {
	for _, id := range ids {
		var d ddb.Diff
		if err := id.Remember(e.core, item, &d); err != nil {
			return nil, err
		}
		if d.Empty() {
			continue
		}
		if item = maps.Clone(item); item == nil {
			item = ddb.Item{}
		}
		for _, a := range d.Set {
			item[a.Name] = a.Value
		}
		for _, name := range d.Remove {
			delete(item, name)
		}
	}
	return item, nil
}

// remember makes an event's write leave its ids: that of its operation, and that of
// the whole transaction.
func (b *event) remember(w *protocol.Write, e *entry, once *typed.Once) error {
	if !e.known {
		if once != nil {
			kept, fingerprint := once.Kept()
			lockless.NewUnreadOnce(kept, fingerprint, e.core.Epoch(e.core.Clock())).Add(w)
		}
		return nil
	}
	now, err := e.remembering(e.image, b.once, once)
	if err != nil {
		return err
	}
	w.ApplyOn(e.image, e.difference(now))
	return nil
}
