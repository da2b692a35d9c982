// Package link gives the engines and strategies of this module what a table of
// package repo has and its users must not see. The exported methods of a table
// are for users, and Go has nothing between them and the unexported ones: so
// package repo hands over a function that opens its tables.
package link

import "github.com/dynahold/dynahold/internal/stored"

// Inner is what engines need of a *repo.Table beside its public methods. Keys is its
// *repo.KeyTable, and Items maps its type: internal/cas says how.
type Inner struct {
	Table       *stored.Table
	Keys, Items any
}

// open returns the *stored.Table of a *repo.KeyTable, and the Inner of a
// *repo.Table.
var open func(table any) any

// SetOpen is called by package repo, once, when the program starts.
func SetOpen(f func(table any) any) { open = f }

// Table is the inner side of a *repo.KeyTable.
func Table(table any) *stored.Table { return open(table).(*stored.Table) }

// Of is the inner side of a *repo.Table.
func Of(table any) Inner { return open(table).(Inner) }

var errorType func(error) string

// SetErrorType is called by package repo, once, when the program starts.
func SetErrorType(f func(error) string) { errorType = f }

// ErrorType names an error in telemetry.
func ErrorType(err error) string { return errorType(err) }
