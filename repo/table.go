package repo

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table maps T to the items of one DynamoDB table. It is safe for concurrent
// use and holds no state of items.
type Table[T any] struct {
	*KeyTable
	m *mapping
}

// NewTable checks T and the settings, and prepares every fixed expression. It
// sends nothing. An error (ErrSchema, ErrConfig) says how to mend it: also of a field that
// would be lost in writing, or could not be read again.
func NewTable[T any](client Client, name string, cfg TableConfig) (*Table[T], error) {
	m, err := newMapping(client, name, reflect.TypeFor[T](), cfg)
	if err != nil {
		return nil, err
	}
	return &Table[T]{m.KeyTable, m}, nil
}

// Get reads an item with a consistent read. ErrNotFound if there is none, also
// for stubs and tombstones; *TypeError (ErrSchema) if it is of another type. One request, one read unit per 4 KB.
func (t *Table[T]) Get(ctx context.Context, key Key) (T, error) {
	return as[T](t.m.get(ctx, key))
}

// Encode returns the attributes of an item, as a write would send them: with the
// type and the prefixes of keys that the roles of T name. Its key must be valid
// (ErrKey), and its type, if it says one, the table's (*TypeError).
func (t *Table[T]) Encode(item T) (map[string]types.AttributeValue, error) {
	return t.m.Encode(&item)
}

// Decode reads an item, for example an image of a stream record. Attributes
// that T does not know are left out. ErrNotFound for no image, and for that of a stub or a
// tombstone, which readers take for no item; *TypeError (ErrSchema) for one of
// another type, ErrSchema for one that does not fit T, has a key without T's prefix,
// or has foreign attributes under the library's names.
func (t *Table[T]) Decode(raw map[string]types.AttributeValue) (T, error) {
	return as[T](t.m.Decode(raw))
}

// KeyOf is the primary key of an item.
func (t *Table[T]) KeyOf(item T) Key { return t.m.KeyOf(&item) }

// Version is the version of an item; 0 where T has no such field.
func (t *Table[T]) Version(item T) int64 { return t.m.Version(&item) }

// as is what a call has made of an item: the zero value where there is none.
func as[T any](item any, err error) (T, error) {
	if p, ok := item.(*T); ok {
		return *p, err
	}
	return *new(T), err
}
