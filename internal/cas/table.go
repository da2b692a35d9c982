package cas

import (
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/repo"
)

// Table is a table of users with its inner side.
type Table[T any] struct {
	*repo.Table[T]
	link.Inner[T]
}

// TableOf opens a table of users, once for each strategy that works on it.
func TableOf[T any](table *repo.Table[T]) *Table[T] {
	return &Table[T]{table, link.Of(table)}
}
