package protocol

import (
	"github.com/dynahold/dynahold/internal/ddb"
)

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
