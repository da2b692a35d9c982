package typed

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	rows "github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// beside is what a call knows of the rows beside an item, which is true while the item has
// the same mark.
type beside struct {
	mark    types.AttributeValue
	asking  <-chan struct{} // closed when Ahead has its answer; nil: it does not ask
	asked   bool
	entries [][]byte   // that its row has
	move    *rows.Move // what was moved there from the item; nil: nothing
}

// beside is what the call knows of the rows beside an item as it is here.
func (o *Once) beside(core *protocol.Core, item ddb.Item) beside {
	mark := item[core.Once[2]]
	if mark == nil {
		return beside{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if b, ok := o.rows[rowsOf(core, item)]; ok && ddb.Equal(b.mark, mark) {
		return b
	}
	return beside{mark: mark}
}

// knows notes what the call knows.
func (o *Once) knows(core *protocol.Core, item ddb.Item, b beside) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil {
		o.rows = map[string]beside{}
	}
	o.rows[rowsOf(core, item)] = b
}

func rowsOf(core *protocol.Core, item ddb.Item) string {
	return core.Name + "\x00" + core.KeyText(item)
}

// Consult reads the row beside an item that may have the id, where the item says that there
// are such rows, unless the call has read it under the same mark. What it finds is for In,
// Refuse and Shown.
func (o *Once) Consult(ctx context.Context, core *protocol.Core, item ddb.Item) error {
	if o == nil {
		return nil
	}
	b, epoch := o.beside(core, item), core.Epoch(core.Clock())
	if b.asked || !core.MarkAt(item, epoch).Beside(epoch) || core.Recall(item, o.id, o.print) == protocol.Made {
		return nil
	}
	core.Marks.Change(core.KeyText(item), func(types.AttributeValue) (types.AttributeValue, bool) { return b.mark, true })
	if b.asking != nil {
		select {
		case <-b.asking:
		case <-ctx.Done():
		}
		if b = o.beside(core, item); b.asked {
			return nil
		}
	}
	return o.ask(ctx, core, item, b, epoch)
}

// ask reads the row.
func (o *Once) ask(ctx context.Context, core *protocol.Core, item ddb.Item, b beside, epoch int64) (err error) {
	b.entries, err = rows.Entries(ctx, core, item, o.id, epoch)
	if err == nil {
		b.asked = true
		o.knows(core, item, b)
	}
	return err
}

// Begin is deferred by a call under the id, with what its item is, and its error: it reads ahead,
// and in the end says of an item that cannot be read whether it remembers the id.
func (o *Once) Begin(ctx context.Context, core *protocol.Core, key ddb.Item, err *error) (end func()) {
	read := o.ahead(ctx, core, key)
	return func() {
		defer read()
		*err = o.unread(ctx, core, key, *err)
	}
}

// ahead reads the row beside an item, as Consult does, while its caller waits for the item
// or reads it: under the mark that this process has seen there last. While the item has that
// mark no id goes from it to a row, so what the row says then is as true as if it were read
// now. Where it has another one, or the row cannot be read, Consult reads.
func (o *Once) ahead(ctx context.Context, core *protocol.Core, key ddb.Item) (end func()) {
	if o == nil || core.Once[2] == "" {
		return func() {}
	}
	item := core.Key(key)
	if mark := core.Marks.Get(core.KeyText(key)); mark != nil {
		item[core.Once[2]] = mark
	}
	epoch := core.Epoch(core.Clock())
	if !core.MarkAt(item, epoch).Beside(epoch) {
		return func() {}
	}
	ctx, end = context.WithCancel(ctx)
	answered := make(chan struct{})
	b := beside{mark: item[core.Once[2]], asking: answered}
	o.knows(core, item, b)
	go func() {
		defer close(answered)
		_ = o.ask(ctx, core, item, b, epoch)
	}()
	return end
}

// Made reports whether an item remembers the id, as it is stored or as changes have left it
// that are not written yet, and notes that. The rows beside it are those of what is stored:
// a mark that is not written yet may be another one's in the end.
func (o *Once) Made(ctx context.Context, core *protocol.Core, stored, now ddb.Item) (made bool, err error) {
	if o == nil {
		return false, nil
	}
	if now[core.Once[2]] == nil {
		stored = now // a new item
	}
	if err = o.Consult(ctx, core, stored); err == nil {
		err = o.Refuse(core, stored)
	}
	if err == nil {
		err = o.Refuse(core, now)
	}
	return err == nil && (o.In(core, stored) || o.In(core, now)), err
}

// MakeRoom makes room on an item that is full, for a write that is about to remember the id:
// ids that are stored go to rows beside it, so that the write can leave them out. Those of
// changes that are not written yet stay: a row would say that they were made. now is the
// item with such changes; if one of them has made room already, this one need not. blind is
// as in package beside.
func (o *Once) MakeRoom(ctx context.Context, core *protocol.Core, stored, now ddb.Item, blind bool) error {
	if o == nil || !ddb.Equal(stored[core.Once[2]], now[core.Once[2]]) {
		return nil
	}
	b := o.beside(core, stored)
	if b.move != nil {
		return nil
	}
	if b.move = rows.MoveFor(core, stored, o.id, o.print, core.Epoch(core.Clock()), blind); b.move == nil {
		return nil
	}
	if err := rows.Put(ctx, core, b.move); err != nil {
		return err
	}
	o.knows(core, stored, b)
	return nil
}

// Move is what MakeRoom has moved from an item, as it is here; nil: nothing.
func (o *Once) Move(core *protocol.Core, item ddb.Item) *rows.Move {
	if o == nil {
		return nil
	}
	return o.beside(core, item).move
}
