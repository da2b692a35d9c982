package stored

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// A ring is the attribute "writers": the random ids of the latest writes of an
// item, newest first, at most eight of eight bytes each. It proves that a
// write whose answer was lost has been applied, and equality of rings proves
// that an item is the one that was read, not one made anew with the same
// version.
//
// A writer that has not read the item (an event write, an expression) cannot push its
// id. It leaves the ring alone and its id in an attribute beside it, the last one that
// did; the version counts both. In a transaction, or where there is no version, it
// starts a new ring of its own id, and what came before is out of sight.
const (
	RingID  = 8 // bytes of one id
	RingLen = 8 * RingID
)

// unreadWriter is the end of the name of the attribute beside the ring.
const unreadWriter = "Unread"

// UnreadWriter is the attribute that has the id of the last write that had not read
// the item.
func (a Attributes) UnreadWriter() string { return a.Writers + unreadWriter }

// Delegated is the attribute of the commands that one process has carried out for others
// (internal/delegation).
func (a Attributes) Delegated() string { return a.Writers + "Delegated" }

// LastUnread is what an item says of it: an id that is nobody's if there is none. As a
// ring of one id it tells of such writes what a ring tells of others.
func (t *Table) LastUnread(item ddb.Item) []byte {
	if id, ok := item[t.Unread].(*types.AttributeValueMemberB); ok && len(id.Value) == RingID {
		return id.Value
	}
	return make([]byte, RingID)
}

// Ring returns the ring of an item; nil where it has none, or something that is
// no ring and proves nothing.
func (t *Table) Ring(item ddb.Item) []byte { return RingOf(item[t.Attr.Writers]) }

// Writes is how many latest writes an item knows the ids of.
func (t *Table) Writes(item ddb.Item) int { return len(t.Ring(item)) / RingID }

// RingOf is Ring of the attribute alone.
func RingOf(v types.AttributeValue) []byte {
	b, ok := v.(*types.AttributeValueMemberB)
	if !ok || len(b.Value) == 0 || len(b.Value) > RingLen || len(b.Value)%RingID != 0 {
		return nil
	}
	return b.Value
}
