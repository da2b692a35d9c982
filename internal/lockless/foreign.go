package lockless

import (
	"strconv"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// IfOurs demands of what stands under the library's names that it is the
// library's, for a write that has not read the item: it would overwrite what is
// somebody else's, or leave it for others to stumble over; and that the item is of
// the table's type. IfUnlocked and what is asked of the marks come in addition.
func IfOurs(w *protocol.Write) {
	IfType(w)
	a := &w.Core.Attr
	zero, most := w.Value(ddb.Number("0")), w.Value(ddb.Integer(stored.MaxNumber))
	for _, name := range []string{a.LockTime, a.LockLease, a.LockHeld, a.LockToken, a.LockStolen} {
		n := w.Name(name)
		w.If("(attribute_not_exists(" + n + ") OR " + n + " BETWEEN " + zero + " AND " + most + ")")
	}
	n, sizes := w.Name(a.Writers), ""
	for size := stored.RingID; size <= stored.RingLen; size += stored.RingID {
		if sizes != "" {
			sizes += ", "
		}
		sizes += w.Value(ddb.Number(strconv.Itoa(size)))
	}
	w.If("(attribute_not_exists(" + n + ") OR attribute_type(" + n + ", " + w.Value(ddb.Text("B")) + ") AND size(" + n + ") IN (" + sizes + "))")
}

// MarkUnread leaves the id of a write that has not read the item, which counts the
// version, and demands that what stands there is the library's, and not the id: against
// a copy that something on the way has made.
func MarkUnread(w *protocol.Write, id protocol.WriteID) {
	n, v := w.Name(w.Core.Unread), w.Value(ddb.Bytes(id[:]))
	w.Set(w.Core.Unread, ddb.Bytes(id[:]))
	w.If("(attribute_not_exists(" + n + ") OR attribute_type(" + n + ", " + w.Value(ddb.Text("B")) + ") AND size(" + n + ") = " + w.Value(ddb.Number(strconv.Itoa(stored.RingID))) + " AND " + n + " <> " + v + ")")
}

// IfMark demands that a mark is not there, or is the library's.
func IfMark(w *protocol.Write, attr string) {
	n := w.Name(attr)
	w.If("(attribute_not_exists(" + n + ") OR " + n + " = " + w.Value(ddb.True()) + ")")
}
