package once

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
)

// maxSteps is more than a value takes that has maxLevels, with pointers and interfaces
// between them.
const maxSteps = 4 * maxLevels

// deeper reports whether a value takes more steps to its end: it may lead to itself, and
// an encoder would never come back.
func (c *coding) deeper(v reflect.Value, steps int) bool {
	if steps == 0 {
		return true
	}
	for part := range c.parts(v) {
		if c.deeper(part, steps-1) {
			return true
		}
	}
	return false
}

// parts are those of a value that are encoded with it, one step away.
func (c *coding) parts(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				yield(v.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				if !yield(v.Index(i)) {
					return
				}
			}
		case reflect.Map:
			for _, e := range v.Seq2() {
				if !yield(e) {
					return
				}
			}
		case reflect.Struct:
			if c.codesItself(v.Type()) || isTime(v.Type()) {
				return
			}
			for i := range v.NumField() {
				if c.encodes(v.Type().Field(i)) && !yield(v.Field(i)) {
					return
				}
			}
		}
	}
}

// encodes reports whether a field is in the encoding of its struct.
func (c *coding) encodes(f reflect.StructField) bool {
	name, _ := c.tag(f)
	return name != "-" && (f.IsExported() || f.Anonymous)
}

// differ says where a value differs from the one that its encoding was decoded to; ""
// if nowhere. Their encodings are the same, so it looks for what is not in them: fields
// that are left out, and the types of what interfaces have. Nil is like empty; times and
// what encodes itself are compared by their encodings, but must not have become zero.
func (c *coding) differ(a, b reflect.Value, at string) string {
	here := at
	if here == "" {
		here = "the whole"
	}
	switch {
	case empty(a) && empty(b):
		return ""
	case c.codesItself(a.Type()) || isTime(a.Type()):
		if !a.IsZero() && b.IsZero() {
			return here
		}
		if isTime(a.Type()) || a.Kind() != reflect.Struct {
			return ""
		}
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() != b.IsNil() {
			return here
		}
		if a.Elem().Type() != b.Elem().Type() {
			return fmt.Sprintf("%s, where an interface has a %v, which comes back as a %v", here, a.Elem().Type(), b.Elem().Type())
		}
		return c.differ(a.Elem(), b.Elem(), at)
	case reflect.Struct:
		return c.differInFields(a, b, at)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return here
		}
		for i := range a.Len() {
			if lost := c.differ(a.Index(i), b.Index(i), at+"[]"); lost != "" {
				return lost
			}
		}
	case reflect.Map:
		if a.Len() != b.Len() {
			return here
		}
		for key, e := range a.Seq2() {
			other := b.MapIndex(key)
			if !other.IsValid() {
				return here
			}
			if lost := c.differ(e, other, at+"[]"); lost != "" {
				return lost
			}
		}
	default:
		if a.Type().ConvertibleTo(numberType) && a.Type().Implements(numberLike) {
			return "" // a numeral: 1.0 comes back as 1
		}
		if !a.Equal(b) {
			return here
		}
	}
	return ""
}

var (
	numberType = reflect.TypeFor[attributevalue.Number]()
	numberLike = reflect.TypeFor[interface {
		Float64() (float64, error)
		Int64() (int64, error)
	}]()
)

// differInFields is differ of those fields that an encoding is to have.
func (c *coding) differInFields(a, b reflect.Value, at string) string {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if _, options := c.tag(f); !c.encodes(f) || isSet(options) {
			continue
		}
		if lost := c.differ(a.Field(i), b.Field(i), at+"."+f.Name); lost != "" {
			return lost
		}
	}
	return ""
}

// empty reports whether there is nothing in a value that has a place for something.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || empty(v.Elem())
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return false
}
