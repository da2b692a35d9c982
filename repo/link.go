package repo

import "github.com/dynahold/dynahold/internal/link"

// What the packages of this module need of a table, and users do not see.
func init() {
	link.SetErrorType(errorType)
	link.SetOpen(func(table any) any { return table.(interface{ inner() any }).inner() })
}

func (t *KeyTable) inner() any { return t.core }

func (t *Table[T]) inner() any {
	return link.Inner{Table: t.core, Keys: t.KeyTable, Items: t.m}
}
