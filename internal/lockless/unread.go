package lockless

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// LeaveUnread makes a write that has not read the item leave its id, and move what others
// demand.
func LeaveUnread(w *protocol.Write, id protocol.WriteID) {
	if w.Core.Version != "" {
		CountVersion(w)
		MarkUnread(w, id)
		return
	}
	StartRing(w, id)
}

// StartRing starts a new ring. Against a copy that something on the way has made it
// demands that this write is not the last one.
func StartRing(w *protocol.Write, id protocol.WriteID) {
	CountVersion(w)
	w.Set(w.Core.Attr.Writers, id.Push(nil))
	ring := w.Name(w.Core.Attr.Writers)
	w.If("(attribute_not_exists(" + ring + ") OR " + ring + " <> " + w.Value(id.Push(nil)) + ")")
}

// CountVersion counts the version on, where the type has one, in a write that has
// not read the item: if it can be counted on.
func CountVersion(w *protocol.Write) {
	if version := w.Core.Version; version != "" {
		w.If("(attribute_not_exists(" + w.Name(version) + ") OR " + w.Name(version) + " < " + w.Value(ddb.Integer(w.Core.MostVersion)) + ")")
		w.SetTo(version, "if_not_exists("+w.Name(version)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(1)))
	}
}

// CheckCounted is CheckCount of the version of an item.
func CheckCounted(c *protocol.Core, item ddb.Item) error {
	v, ok := item[c.Version]
	if !ok || c.Version == "" {
		return nil
	}
	version, err := ddb.Int(v)
	if err != nil {
		return &stored.ShapeError{Attribute: c.Version, Err: err}
	}
	return c.CheckCount(version)
}

// IfType demands, of a write that has not read its item, that the item is of the
// table's type, if there is one that readers see.
func IfType(w *protocol.Write) {
	c := w.Core
	if c.Type == "" {
		return
	}
	w.If("(attribute_not_exists(" + w.Name(c.Partition) + ") OR attribute_exists(" + w.Name(c.Attr.LockStub) + ") OR attribute_exists(" + w.Name(c.Attr.Tombstone) + ") OR " +
		w.Name(c.Type) + " = " + w.Value(c.TypeName) + ")")
}

// StampUpdated makes a write that changes an item say when.
func StampUpdated(w *protocol.Write, now time.Time) {
	for _, a := range w.Core.Stamp(now, false) {
		w.Set(a.Name, a.Value)
	}
}

// SetOnce gives an attribute, if the type has it, a value where the item has none.
func SetOnce(w *protocol.Write, attr string, v types.AttributeValue) {
	if attr != "" && v != nil {
		w.SetTo(attr, "if_not_exists("+w.Name(attr)+", "+w.Value(v)+")")
	}
}
