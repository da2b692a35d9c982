package repo

import (
	"reflect"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Define is NewTable for a type that is known when the test runs: a Table[T] for each of
// dozens of types would be most of what the compiler does for these tests.
func Define(t reflect.Type, client Client, cfg TableConfig) error {
	_, err := newMapping(client, "table", t, cfg)
	return err
}

// EncodeAny is Table.Encode in the same way; item points to one.
func EncodeAny(item any, client Client) (ddb.Item, error) {
	m, err := newMapping(client, "table", reflect.TypeOf(item).Elem(), TableConfig{})
	if err != nil {
		return nil, err
	}
	return m.Encode(item)
}

// ErrorType names errors in spans and metrics.
var ErrorType = errorType

// ChangesOf is what Changes says of a change to an item, and what the comparison of its
// encodings before and after it says; told is false where Changes cannot be asked.
func ChangesOf[T any](t *Table[T], raw ddb.Item, change func(*T)) (got, want ddb.Diff, sameKey, told bool, err error) {
	item, before, told, err := t.m.Start(raw)
	if err != nil || !told {
		return got, want, false, told, err
	}
	was, err := t.m.Encode(item)
	if err != nil {
		return got, want, false, told, err
	}
	is := t.m.Copy(item)
	change(is.(*T))
	after, err := t.m.encode(is)
	if err != nil {
		return got, want, false, told, err
	}
	got, sameKey, err = t.m.Changes(raw, before, item, is)
	return got, t.m.core.Diff(was, after), sameKey, told, err
}
