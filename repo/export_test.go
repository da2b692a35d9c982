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
