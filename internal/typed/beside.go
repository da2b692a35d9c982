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
	if b.asked || !core.MarkOf(item).Beside(epoch) || core.Recall(item, o.id, o.print) == protocol.Made {
		return nil
	}
	entries, err := rows.Entries(ctx, core, item, o.id, epoch)
	if err != nil {
		return err
	}
	b.asked, b.entries = true, entries
	o.knows(core, item, b)
	return nil
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
