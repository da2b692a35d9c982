package once

import (
	"fmt"
	"iter"
	"reflect"
	"time"

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
			if c.codesItself(v.Type()) {
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
	switch opaque := c.codesItself(a.Type()); {
	case empty(a) && empty(b):
		return ""
	case opaque && !a.IsZero() && b.IsZero(), moved(a, b):
		return place(at)
	case opaque && a.Kind() != reflect.Struct:
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		return c.differInside(a, b, at)
	case reflect.Struct:
		return c.differInFields(a, b, at)
	case reflect.Slice, reflect.Array, reflect.Map:
		return c.differInElements(a, b, at)
	}
	if isNumeral(a.Type()) || a.Equal(b) { // of numerals 1.0 comes back as 1
		return ""
	}
	return place(at)
}

// moved reports whether what is a time has become another one because its zone is off by seconds,
// as zones were that followed the sun: their texts have minutes.
func moved(a, b reflect.Value) bool {
	if !isTime(a.Type()) || !a.CanInterface() {
		return false
	}
	was, is := a.Convert(timeType).Interface().(time.Time), b.Convert(timeType).Interface().(time.Time)
	_, offset := was.Zone()
	return offset%60 != 0 && was.Sub(is).Abs() >= time.Second
}

// isNumeral reports whether values of a type are texts that are kept as numbers.
func isNumeral(t reflect.Type) bool {
	return t.ConvertibleTo(numberType) && t.Implements(numberLike)
}

// place names where a value is in the whole.
func place(at string) string {
	if at == "" {
		return "the whole"
	}
	return at
}

// differInside is differ of what pointers lead to, or interfaces have.
func (c *coding) differInside(a, b reflect.Value, at string) string {
	if a.IsNil() != b.IsNil() {
		return place(at)
	}
	if was, is := a.Elem().Type(), b.Elem().Type(); was != is {
		return fmt.Sprintf("%s, where an interface has a %v, which comes back as a %v", place(at), was, is)
	}
	return c.differ(a.Elem(), b.Elem(), at)
}

// differInElements is differ of slices, arrays and maps.
func (c *coding) differInElements(a, b reflect.Value, at string) string {
	if a.Len() != b.Len() {
		return place(at)
	}
	for key, e := range a.Seq2() {
		other := reflect.Value{}
		if b.Kind() == reflect.Map {
			other = b.MapIndex(key)
		} else {
			other = b.Index(int(key.Int()))
		}
		if !other.IsValid() {
			return place(at)
		}
		if lost := c.differ(e, other, at+"[]"); lost != "" {
			return lost
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
