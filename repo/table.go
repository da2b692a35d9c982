package repo

import (
	"context"
	"fmt"
	"reflect"
)

// Table maps T to the items of one DynamoDB table. It is safe for concurrent
// use and holds no state of items.
type Table[T any] struct {
	*KeyTable
	schema *schema
	plan   *plan    // nil: attributevalue codes T
	known  []string // every attribute of T, keys included
}

// NewTable checks T and the settings, and prepares every fixed expression. It
// sends nothing. An error (ErrSchema, ErrConfig) says how to mend it.
func NewTable[T any](client Client, name string, cfg TableConfig) (*Table[T], error) {
	c, err := newCodec(cfg)
	if err != nil {
		return nil, err
	}
	s, err := newSchema(reflect.TypeFor[T](), cfg.Attributes.withDefaults(), c)
	if err != nil {
		return nil, err
	}
	keys, err := newKeyTable(client, name, s, cfg)
	if err != nil {
		return nil, err
	}
	keys.core.Shares = sharesValues(reflect.TypeFor[T](), map[reflect.Type]bool{})
	known := append([]string{s.pk.name}, s.mapped...)
	if s.sk.name != "" {
		known = append(known, s.sk.name)
	}
	t := &Table[T]{KeyTable: keys, schema: s, known: known}
	if !c.given {
		t.plan = newPlan(reflect.TypeFor[T](), s.fields)
	}
	return t, nil
}

// Get reads an item with a consistent read. ErrNotFound if there is none, also
// for stubs and tombstones; *TypeError (ErrSchema) if it is of another type. One request, one read unit per 4 KB.
func (t *Table[T]) Get(ctx context.Context, key Key) (T, error) {
	var zero T
	k, err := t.EncodeKey(key)
	if err != nil {
		return zero, err
	}
	raw, err := t.core.Get(ctx, k)
	if err != nil {
		return zero, err
	}
	if len(raw) == 0 || t.core.Hidden(raw) {
		return zero, fmt.Errorf("%w: %v in table %q", ErrNotFound, key, t.Name())
	}
	return t.decode(raw)
}
