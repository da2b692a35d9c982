package beside

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// An item has room for so many ids of operations. The write that finds it full goes over
// to rows beside the item: the ids that are there are put into rows first, one for each id,
// and the write itself then takes them from the item, and gives it another mark. What such
// a row says is true whatever becomes of that write, so it can be put any number of times.
//
// Whoever makes a change under an id asks for its row, after having seen the mark, and
// writes under the condition that the item is as it was seen, or has that mark: then no id
// has gone from the item to a row in between. An id is found on the item or by that one
// request.

// Move is what goes from an item to rows beside it.
type Move struct {
	Rows []Row

	from   types.AttributeValue // the mark of the item as it was
	to     stored.Mark
	begins bool            // the write begins an epoch
	taken  map[string]bool // the entries that go
}

// Row is what one row beside an item is to have: what is remembered of one id.
type Row struct {
	Key     ddb.Item
	Entries [][]byte
	Epoch   int64 // of the item, when the id was written
}

// maxMoved bounds one move: of an item that this program has filled all goes at once, of
// one that an earlier program has filled with thousands so much with each change.
const maxMoved = 4 * stored.OnceRoom

// MoveFor is what must go from an item before a write that remembers an id on it; nil:
// there is room, nothing can go, or it is for another one to do.
//
// blind says that the write has not read the item: the first that it hears of is that it
// is full, with twice as many.
func MoveFor(c *protocol.Core, item ddb.Item, id, fingerprint protocol.OnceID, epoch int64, blind bool) *Move {
	mark, present, past := remembered(c, item, epoch)
	m := &Move{from: item[c.Once[2]], begins: mark.Epoch < epoch, taken: map[string]bool{}}
	own := len(id.Entries(fingerprint))
	full := c.OnceRoom * own
	if blind {
		full *= 2
	}
	switch many := 2 * c.OnceRoom; {
	case m.begins && len(present) <= many: // they become the past, and are forgotten soon
		return nil
	case !m.begins && len(present) < full && len(past) <= many:
		return nil
	case !moves(c, item, id) && len(present) < full+c.OnceRoom:
		return nil
	}
	m.to = mark
	if m.to.Rows == "" {
		m.to.Rows = newRows()
	}
	m.to.Epoch, m.to.Moves, m.to.Moved = max(mark.Epoch, epoch), mark.Moves+1, mark.Epoch
	m.take(c, item, present, mark.Epoch)
	if !m.begins {
		m.take(c, item, past, mark.Epoch-1)
	}
	if len(m.taken) == 0 || !m.begins && len(m.rest(present))+own > stored.MostOnceIDs {
		return nil
	}
	return m
}

// moves reports whether it is for the writer of an id to move others. A holder of the lock
// is alone. Of those who race for an item that is full one in sixteen is enough: else each
// of them would put the same rows, for one to win.
func moves(c *protocol.Core, item ddb.Item, id protocol.OnceID) bool {
	return item[c.Attr.LockedBy] != nil || id[len(id)-1]%16 == 0
}

// excludes reports whether an entry is an id that a write demands not to be there, behind
// zeros. One of an operation begins like that once in four thousand million: it stays.
func excludes(entry []byte) bool {
	return bytes.Equal(entry[:stored.OnceIDBytes-stored.RingID], make([]byte, stored.OnceIDBytes-stored.RingID))
}

// take takes entries that were written in an epoch, as long as there may be more. Those
// that are no operation's stay: writes demand that they are not on the item.
func (m *Move) take(c *protocol.Core, item ddb.Item, entries [][]byte, epoch int64) {
	at := map[string]int{}
	for _, entry := range entries {
		if excludes(entry) || len(m.taken) == maxMoved {
			continue
		}
		m.taken[string(entry)] = true
		begin := string(entry[:stored.OnceIDBytes/2])
		i, there := at[begin]
		if !there {
			i, at[begin] = len(m.Rows), len(m.Rows)
			m.Rows = append(m.Rows, Row{Key: c.OnceRow(item, m.to, entry), Epoch: epoch})
		}
		m.Rows[i].Entries = append(m.Rows[i].Entries, entry)
	}
}

// Epoch is that of the item behind the write.
func (m *Move) Epoch() int64 { return m.to.Epoch }

// Fits reports whether an item is as it was when the move was made.
func (m *Move) Fits(c *protocol.Core, item ddb.Item) bool {
	if m == nil || !ddb.Equal(m.from, item[c.Once[2]]) {
		return false
	}
	there := 0
	for _, name := range c.Once[:2] {
		for _, entry := range protocol.EntriesOf(item[name]) {
			if m.taken[string(entry)] {
				there++
			}
		}
	}
	return there >= len(m.taken)
}

// rest are the entries that stay on the item.
func (m *Move) rest(entries [][]byte) (rest [][]byte) {
	for _, entry := range entries {
		if !m.taken[string(entry)] {
			rest = append(rest, entry)
		}
	}
	return rest
}

// newRows names the rows beside one life of an item.
func newRows() string {
	var name [9]byte
	_, _ = rand.Read(name[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(name[:])
}

// RowOf is the key of the row that may have an id of an operation on an item.
func RowOf(c *protocol.Core, item ddb.Item, id protocol.OnceID) ddb.Item {
	return c.OnceRow(item, c.MarkOf(item), id[:])
}

// InRow are the entries that a row has which an item is to remember, to a writer in an
// epoch.
func InRow(c *protocol.Core, item, row ddb.Item, epoch int64) [][]byte {
	if c.MarkAt(row, epoch).Epoch < max(c.MarkAt(item, epoch).Epoch, epoch)-1 {
		return nil
	}
	return protocol.EntriesOf(row[c.Once[0]])
}

// putting makes a row, in the place of one that is forgotten.
func putting(c *protocol.Core, row Row) (*dynamodb.UpdateItemInput, error) {
	w := rowWrite(c, row)
	w.Set(c.Once[0], &types.AttributeValueMemberBS{Value: row.Entries})
	w.Set(c.Once[2], ddb.Integer(row.Epoch))
	epoch := w.Name(c.Once[2])
	w.If("(attribute_not_exists(" + epoch + ") OR " + epoch + " < " + w.Value(ddb.Integer(row.Epoch-1)) + ")")
	return w.Update(row.Key)
}

// joining adds to a row that is there, and has refused putting; nil: it has all of it.
func joining(c *protocol.Core, row Row, there ddb.Item) (*dynamodb.UpdateItemInput, error) {
	has, epoch := protocol.EntriesOf(there[c.Once[0]]), c.MarkOf(there).Epoch
	missing := slices.DeleteFunc(slices.Clone(row.Entries), func(entry []byte) bool {
		return slices.ContainsFunc(has, func(other []byte) bool { return bytes.Equal(entry, other) })
	})
	if len(missing) == 0 && epoch >= row.Epoch {
		return nil, nil
	}
	w := rowWrite(c, row)
	w.AddTo(c.Once[0], w.Value(&types.AttributeValueMemberBS{Value: row.Entries}))
	w.Set(c.Once[2], ddb.Integer(max(epoch, row.Epoch)))
	w.IfEqual(c.Once[2], there[c.Once[2]])
	return w.Update(row.Key)
}

// rowWrite begins a write of a row: no reader takes it for an item, and it ends when
// nobody can ask for it any more, whose clock is not a whole epoch behind.
func rowWrite(c *protocol.Core, row Row) *protocol.Write {
	w := c.NewWrite()
	end := time.UnixMilli((row.Epoch + 3) * c.Retention.Milliseconds())
	w.Set(c.Attr.Tombstone, ddb.True())
	w.Set(c.Attr.TTL, ddb.Integer(end.Unix()+1))
	return w
}
