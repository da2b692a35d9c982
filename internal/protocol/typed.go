package protocol

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// IfType demands, of a write that has not read its item, that the item is of the
// table's type, if there is one that readers see.
func (w *Write) IfType() {
	c := w.core
	if c.Type == "" {
		return
	}
	w.If("(attribute_not_exists(" + w.Name(c.Partition) + ") OR attribute_exists(" + w.Name(c.Attr.LockStub) + ") OR attribute_exists(" + w.Name(c.Attr.Tombstone) + ") OR " +
		w.Name(c.Type) + " = " + w.Value(c.TypeName) + ")")
}

// The same in the fixed texts: of an item that readers see, and of any.
const (
	exprType      = " AND #type = :type"
	exprTypeOrNot = " AND (attribute_exists(#lockStub) OR attribute_exists(#tombstone) OR #type = :type)"
)

// demand is a template that demands the table's type, too.
func (s template) demand(c *Core, expr string) template {
	if c.Type == "" {
		return s
	}
	s.cond += expr
	s.names["#type"] = c.Type // made for this template alone
	return s
}

// typed adds what the demand asks for.
func (c *Core) typed(values ddb.Item) {
	if c.Type != "" {
		values[":type"] = c.TypeName
	}
}

// StampUpdated makes a write that changes an item say when.
func (w *Write) StampUpdated(now time.Time) {
	for _, a := range w.core.Stamp(now, false) {
		w.Set(a.Name, a.Value)
	}
}

// SetOnce gives an attribute, if the type has it, a value where the item has none.
func (w *Write) SetOnce(attr string, v types.AttributeValue) {
	if attr != "" && v != nil {
		w.SetTo(attr, "if_not_exists("+w.Name(attr)+", "+w.Value(v)+")")
	}
}
