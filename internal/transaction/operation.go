package transaction

import (
	"context"
	"errors"
	"maps"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Operation is a transaction that is applied once, under an operation id. Every item
// that it writes remembers the id; one that does is evidence for all of them.
type Operation struct{ calls cas.OnceCalls }

// NewOperation makes one. Its id is no other operation's on an item, whatever the
// text of that is: an item may have been changed under the same text alone.
func NewOperation(id string) *Operation {
	return &Operation{cas.OnceCalls{ID: id, Scope: "transaction\x00"}}
}

// Run is the function Run, but nothing is written if an item that the closure touches
// remembers the id.
func (o *Operation) Run(ctx context.Context, cfg Config, fn func(context.Context, *Tx) error) error {
	return o.calls.Do(func(once *cas.Once) error {
		err := run(ctx, cfg, once, fn)
		if errors.Is(err, errMade) {
			once.Note(true)
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
func (tx *Tx) refuseMade(e *entry) error {
	if !tx.call.once.In(e.core, e.image) {
		return nil
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.made = true
	return errMade
}

// remembering is the item as the closure has left it, with the transaction's id.
func (e *entry) remembering(once *cas.Once) (ddb.Item, error) {
	var d ddb.Diff
	if err := once.Remember(e.core, e.now, &d); err != nil || d.Empty() {
		return e.now, err
	}
	now := maps.Clone(e.now)
	for _, a := range d.Set {
		now[a.Name] = a.Value
	}
	return now, nil
}

// rememberUnread makes an event's write, that has not read its item or is not to
// change anything else that was read, leave the transaction's id.
func (e *entry) rememberUnread(w *protocol.Write, once *cas.Once) error {
	var d ddb.Diff
	switch {
	case once == nil:
	case e.known:
		if err := once.Remember(e.core, e.image, &d); err != nil {
			return err
		}
		w.Apply(d)
	default:
		once.Unread(e.core).Add(w)
	}
	return nil
}
