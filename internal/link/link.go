// Package link gives the engines and strategies of this module what a table of
// package repo has and its users must not see. The exported methods of a table
// are for users, and Go has nothing between them and the unexported ones: so
// package repo hands over a function that opens its tables.
package link

import (
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Inner is what strategies need of a table of T beside its public methods.
type Inner[T any] struct {
	Core *protocol.Core
	// EncodeGiven encodes an item that a caller hands in. It refuses what Encode
	// takes, but no event may have.
	EncodeGiven func(item T) (ddb.Item, error)
	// WithVersion returns the item with another version; unchanged where T has
	// none.
	WithVersion func(item T, version int64) T
}

// open returns the *protocol.Core of a *repo.KeyTable, and the Inner[T] of a
// *repo.Table[T].
var open func(table any) any

// SetOpen is called by package repo, once, when the program starts.
func SetOpen(f func(table any) any) { open = f }

// Core is the inner side of a *repo.KeyTable.
func Core(table any) *protocol.Core { return open(table).(*protocol.Core) }

// Of is the inner side of a *repo.Table[T].
func Of[T any](table interface{ Version(item T) int64 }) Inner[T] { return open(table).(Inner[T]) }
