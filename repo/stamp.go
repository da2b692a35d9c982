package repo

import (
	"fmt"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// TypeError is an item of another type than its table's: see the role type. It is
// ErrSchema.
type TypeError struct {
	Table  string
	Key    Key
	Type   string // that of the table
	Stored string // what the item says; "" if nothing, or no text
}

func (e *TypeError) Error() string {
	is := fmt.Sprintf("is of the type %q", e.Stored)
	if e.Stored == "" {
		is = "says no type"
	}
	return fmt.Sprintf("%v: %s %s, not %q", ErrSchema, itemName(e.Table, e.Key), is, e.Type)
}

// Is makes errors.Is(err, ErrSchema) true.
func (e *TypeError) Is(target error) bool { return target == ErrSchema }

// mistyped is the error of an item of another type.
func (t *KeyTable) mistyped(entity field, raw ddb.Item) error {
	e := &TypeError{Table: t.Name(), Key: t.DecodeKey(raw), Type: entity.role.of}
	if s, ok := raw[entity.name].(*types.AttributeValueMemberS); ok {
		e.Stored = s.Value
	}
	return e
}

// checkEntity verifies the field that names the type of an item.
func (c *codec) checkEntity(f field) (field, error) {
	if !c.isText(f.typ) {
		return f, fmt.Errorf("field %s names the type but has type %v: use a string", f.goName, f.typ)
	}
	return f, nil
}

// checkStamp verifies a field that says when an item was made or changed.
func (c *codec) checkStamp(f field) (field, error) {
	isTime := f.typ == timeType || f.typ == unixTimeType
	switch {
	case isTime && f.role.unit != 0:
		return f, fmt.Errorf("field %s is a %v, which knows its unit: leave out the option unit of its role", f.goName, f.typ)
	case isTime:
		return f, nil
	case !c.isInteger(f.typ) || f.has("string") || f.typ.Bits() < 64:
		return f, fmt.Errorf("field %s has the role %q but type %v: use time.Time, or an integer of 64 bits, whose unit is the second, or that of the role, as in repo:\"%s,unit=ms\"", f.goName, f.role.name, f.typ, f.role.name)
	}
	if f.role.unit == 0 {
		f.role.unit = time.Second
	}
	return f, nil
}

// seconds reports whether a time is kept in whole seconds.
func (f field) seconds() bool { return f.typ == unixTimeType || f.has("unixtime") }

// stampOf is a time as a field keeps it: what is read back later is equal to it.
func (f field) stampOf(now time.Time) reflect.Value {
	switch {
	case f.typ != timeType && f.typ != unixTimeType:
		n := reflect.New(f.typ).Elem()
		if steps := now.UnixNano() / int64(f.role.unit); n.CanInt() {
			n.SetInt(steps)
		} else {
			n.SetUint(uint64(steps))
		}
		return n
	case f.seconds():
		return reflect.ValueOf(time.Unix(now.Unix(), 0)).Convert(f.typ)
	}
	return reflect.ValueOf(now.UTC().Round(0)) // without the process's own clock
}

// encodeStamp is stampOf as it is stored.
func (c *codec) encodeStamp(f field, now time.Time) types.AttributeValue {
	v := f.stampOf(now)
	if f.typ == timeType && f.seconds() {
		v = v.Convert(unixTimeType)
	}
	av, err := c.encoder.Encode(v.Interface())
	if err != nil { // of an EncodeTime of the user's: the item's own encoding reports it
		return &types.AttributeValueMemberNULL{Value: true}
	}
	return av
}

// stamps are the attributes that a change of now sets: of an item that begins both,
// else updated alone.
func (s *schema) stamps(now time.Time, begins bool) (all []ddb.Attribute) {
	for _, f := range s.stamped(begins) {
		all = append(all, ddb.Attribute{Name: f.name, Value: s.codec.encodeStamp(f, now)})
	}
	return all
}

func (s *schema) stamped(begins bool) (fields []field) {
	if begins && s.created.name != "" {
		fields = append(fields, s.created)
	}
	if s.updated.name != "" {
		fields = append(fields, s.updated)
	}
	return fields
}

// Stamp returns an item with its type, and with the time of its change: the item
// itself where the type has no such roles, else a copy.
func (t *mapping) Stamp(item any, now time.Time, begins bool) any {
	if !t.core.HasRoles() {
		return item
	}
	item = t.Copy(item)
	v := valueOf(item)
	t.schema.name(v)
	for _, f := range t.schema.stamped(begins) {
		v.FieldByIndex(f.index).Set(f.stampOf(now))
	}
	return item
}

// name gives an item that does not name its type that of the table.
func (s *schema) name(v reflect.Value) {
	if s.entity.name == "" {
		return
	}
	if f := v.FieldByIndex(s.entity.index); f.String() == "" {
		f.SetString(s.entity.role.of)
	}
}

// Altered is the field that a change has altered though the library writes it, ""
// if there is none: an item's type, and when it was made and changed.
func (t *mapping) Altered(was, is any) string {
	if !t.core.HasRoles() {
		return ""
	}
	s := t.schema
	before, after := valueOf(was), valueOf(is)
	for _, f := range []field{s.entity, s.created, s.updated} {
		if f.name == "" {
			continue
		}
		a, b := before.FieldByIndex(f.index), after.FieldByIndex(f.index)
		same := a.Equal
		if f.typ == timeType || f.typ == unixTimeType {
			same = func(b reflect.Value) bool {
				return a.Convert(timeType).Interface().(time.Time).Equal(b.Convert(timeType).Interface().(time.Time))
			}
		}
		if !same(b) {
			return f.goName
		}
	}
	return ""
}
