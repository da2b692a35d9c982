package repo

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/link"
)

// What the packages of this module need of a table, and users do not see.
func init() {
	link.SetErrorType(errorType)
	link.SetOpen(func(table any) any { return table.(interface{ inner() any }).inner() })
}

func (t *KeyTable) inner() any { return t.core }

func (t *Table[T]) inner() any {
	return link.Inner{Core: t.core, Keys: t.KeyTable, Items: items[T]{t}}
}

// items is the table for engines, which know an item by a pointer alone: see
// internal/cas.
type items[T any] struct{ t *Table[T] }

func (m items[T]) Encode(item any) (ddb.Item, error)      { return m.t.Encode(*item.(*T)) }
func (m items[T]) EncodeGiven(item any) (ddb.Item, error) { return m.t.encodeGiven(*item.(*T)) }

func (m items[T]) Decode(raw ddb.Item) (any, error) {
	item, err := m.t.Decode(raw)
	if err != nil {
		return nil, err
	}
	return &item, nil
}

func (m items[T]) KeyOf(item any) Key     { return m.t.KeyOf(*item.(*T)) }
func (m items[T]) Version(item any) int64 { return m.t.Version(*item.(*T)) }

func (m items[T]) WithVersion(item any, version int64) any {
	next := m.t.withVersion(*item.(*T), version)
	return &next
}

func (m items[T]) Copy(item any) any {
	same := *item.(*T)
	return &same
}

func (m items[T]) Value(item any) any { return *item.(*T) }

func (m items[T]) Stamp(item any, now time.Time, begins bool) any {
	if !m.t.core.HasRoles() {
		return item
	}
	next := m.t.stamp(*item.(*T), now, begins)
	return &next
}

func (m items[T]) Altered(was, is any) string { return m.t.altered(*was.(*T), *is.(*T)) }
