package repo

import (
	"encoding"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	unmarshaler = reflect.TypeFor[attributevalue.Unmarshaler]()
	anyValue    = reflect.TypeFor[types.AttributeValue]()
	toBytes     = reflect.TypeFor[encoding.BinaryMarshaler]()
	fromBytes   = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// sharesValues reports whether a decoded T may keep parts of the values that it
// was decoded from, or encode to what it keeps: where it decodes or encodes
// itself. The decoder of the SDK copies, and so does its encoder, but what MarshalBinary
// returns it takes as it is.
func (c *codec) sharesValues(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if t == timeType || t == unixTimeType {
		return false
	}
	own := []reflect.Type{unmarshaler, marshaler, anyValue}
	if c.texts {
		own = append(own, toBytes, fromBytes)
	}
	for _, i := range own {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Interface:
		return true // what it holds may encode itself
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return c.sharesValues(t.Elem(), seen)
	case reflect.Map:
		return c.sharesValues(t.Key(), seen) || c.sharesValues(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if c.sharesValues(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
