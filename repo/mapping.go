package repo

import (
	"context"
	"fmt"
	"math"
	"reflect"
)

// mapping is what a Table knows of its type, by reflection. An item is a pointer to
// a value of the type, in an any: what works on it is compiled once, not for each
// type. Its exported methods are what internal/cas asks of a table.
type mapping struct {
	*KeyTable
	typ    reflect.Type
	schema *schema
	plan   *plan    // nil: attributevalue codes the type
	known  []string // every attribute of the type, keys included
}

func newMapping(client Client, name string, typ reflect.Type, cfg TableConfig) (*mapping, error) {
	c, err := newCodec(cfg)
	if err != nil {
		return nil, err
	}
	s, err := newSchema(typ, cfg.Attributes.withDefaults(), c)
	if err != nil {
		return nil, err
	}
	keys, err := newKeyTable(client, name, s, cfg)
	if err != nil {
		return nil, err
	}
	keys.core.Shares = c.sharesValues(typ, map[reflect.Type]bool{})
	known := append([]string{s.pk.name}, s.mapped...)
	if s.sk.name != "" {
		known = append(known, s.sk.name)
	}
	t := &mapping{KeyTable: keys, typ: typ, schema: s, known: known}
	if !c.given {
		t.plan = newPlan(typ, s.fields)
	}
	return t, nil
}

func (t *mapping) get(ctx context.Context, key Key) (any, error) {
	k, err := t.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	raw, err := t.core.Get(ctx, k)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || t.core.Hidden(raw) {
		return nil, fmt.Errorf("%w: %v in table %q", ErrNotFound, key, t.Name())
	}
	return t.decode(raw)
}

// valueOf is what an item points to.
func valueOf(item any) reflect.Value { return reflect.ValueOf(item).Elem() }

// Copy is another item with the same value.
func (t *mapping) Copy(item any) any {
	same := reflect.New(t.typ)
	same.Elem().Set(valueOf(item))
	return same.Interface()
}

// Value is what the item points to.
func (t *mapping) Value(item any) any { return valueOf(item).Interface() }

// KeyOf is the primary key of an item.
func (t *mapping) KeyOf(item any) Key {
	v := valueOf(item)
	key := Key{Partition: v.FieldByIndex(t.schema.pk.index).Interface()}
	if t.schema.sk.name != "" {
		key.Sort = v.FieldByIndex(t.schema.sk.index).Interface()
	}
	return key
}

// Version is the version of an item; 0 where the type has no such field.
func (t *mapping) Version(item any) int64 {
	if t.schema.version.name == "" {
		return 0
	}
	v := valueOf(item).FieldByIndex(t.schema.version.index)
	if v.CanInt() {
		return v.Int()
	}
	return int64(min(v.Uint(), math.MaxInt64)) // beyond that none can be reached by counting
}

// mostVersion is the greatest version of a type; 0 where there is none.
func mostVersion(typ reflect.Type) int64 {
	switch {
	case typ == nil:
		return 0
	case typ.Bits() == 64:
		return math.MaxInt64
	case typ.Kind() == reflect.Uint, typ.Kind() == reflect.Uint32, typ.Kind() == reflect.Uintptr:
		return math.MaxUint32
	}
	return math.MaxInt32
}

// WithVersion returns a copy with another version; just a copy where the type has no
// such field.
func (t *mapping) WithVersion(item any, version int64) any {
	item = t.Copy(item)
	if t.schema.version.name == "" {
		return item
	}
	v := valueOf(item).FieldByIndex(t.schema.version.index)
	if v.CanInt() {
		v.SetInt(version)
	} else {
		v.SetUint(uint64(version)) // versions are never negative
	}
	return item
}
