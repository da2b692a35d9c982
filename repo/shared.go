package repo

import (
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	unmarshaler = reflect.TypeFor[attributevalue.Unmarshaler]()
	anyValue    = reflect.TypeFor[types.AttributeValue]()
)

// sharesValues reports whether a decoded T may keep parts of the values that it
// was decoded from, or encode to what it keeps: where it decodes or encodes
// itself. The decoder of the SDK copies.
func sharesValues(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if t == timeType || t == unixTimeType {
		return false
	}
	for _, i := range []reflect.Type{unmarshaler, marshaler, anyValue} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Interface:
		return true // what it holds may encode itself
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return sharesValues(t.Elem(), seen)
	case reflect.Map:
		return sharesValues(t.Key(), seen) || sharesValues(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if sharesValues(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
