package once

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/dynahold/dynahold/repo"
)

// typeFacts is what is known of the type of a result before there is one.
type typeFacts struct {
	err     error // it has values that do not survive, whatever they are
	endless bool  // it may lead to itself
}

// facts finds them, once for each type.
func (c *coding) facts(t reflect.Type) typeFacts {
	if known, ok := c.types.Load(t); ok {
		return known.(typeFacts)
	}
	s := &typeCheck{coding: c, seen: map[reflect.Type]bool{}}
	f := typeFacts{}
	if at, why := s.check(t); why != "" {
		f.err = fmt.Errorf("%w: a result of type %v would not come back as it is: %s%s; nothing was sent", repo.ErrSchema, t, strings.TrimPrefix(at+" ", " "), why)
	}
	f.endless = s.endless
	c.types.Store(t, f)
	return f
}

// typeCheck goes through a type.
type typeCheck struct {
	*coding
	seen    map[reflect.Type]bool // true while it goes through it
	endless bool
}

var (
	timeType    = reflect.TypeFor[time.Time]()
	bytesOfSets = reflect.TypeFor[[][]byte]()
)

// check says where a type has what does not survive, and why; "" if it all does.
func (s *typeCheck) check(t reflect.Type) (at, why string) {
	if within, seen := s.seen[t]; seen {
		s.endless = s.endless || within
		return "", ""
	}
	s.seen[t] = true
	defer func() { s.seen[t] = false }()
	if s.codesItself(t) || isTime(t) {
		return "", ""
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.checkFields(t, map[string]bool{})
	case reflect.Pointer, reflect.Array:
		return s.check(t.Elem())
	case reflect.Slice:
		if t == bytesOfSets {
			return "", "a [][]byte is kept as a set, which has no order: give its elements a type of their own"
		}
		return s.check(t.Elem())
	case reflect.Map:
		if !codesKey(t.Key()) {
			return "", fmt.Sprintf("a map has keys of type %v", t.Key())
		}
		return s.check(t.Elem())
	case reflect.Interface:
		s.endless = true
		if t.NumMethod() > 0 {
			return "", fmt.Sprintf("nothing can be decoded to the interface %v", t)
		}
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr, reflect.Complex64, reflect.Complex128:
		return "", fmt.Sprintf("a %v has no encoding", t.Kind())
	}
	return "", ""
}

// checkFields is check of a struct, with those that are embedded in it: names are what
// its encoding has already.
func (s *typeCheck) checkFields(t reflect.Type, names map[string]bool) (at, why string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options := s.tag(f)
		if leavesOut(f, name) {
			continue
		}
		if inner := embedded(f, name); inner != nil {
			if at, why = s.checkEmbedded(inner, names); why != "" {
				return f.Name + "." + at, why
			}
			continue
		}
		if !f.IsExported() {
			return f.Name, "is unexported, and is not encoded: the tag `" + s.tagKey() + `:"-"` + "` says that results go without it"
		}
		if name == "" {
			name = f.Name
		}
		if names[name] {
			return f.Name, "has the name of another field"
		}
		names[name] = true
		if isSet(options) && f.Type == bytesOfSets {
			continue
		}
		if at, why = s.check(f.Type); why != "" {
			return strings.TrimSuffix(f.Name+"."+at, "."), why
		}
	}
	return "", ""
}

// leavesOut reports whether a field is to be left out, or has nothing.
func leavesOut(f reflect.StructField, name string) bool {
	return name == "-" || f.Name == "_" || f.Type.Size() == 0 && !f.IsExported()
}

// embedded is the struct whose fields are as if they were the outer one's; nil: none is.
func embedded(f reflect.StructField, name string) reflect.Type {
	inner := f.Type
	if inner.Kind() == reflect.Pointer && f.IsExported() {
		inner = inner.Elem()
	}
	if !f.Anonymous || name != "" || inner.Kind() != reflect.Struct {
		return nil
	}
	return inner
}

func (s *typeCheck) checkEmbedded(t reflect.Type, names map[string]bool) (at, why string) {
	if s.seen[t] {
		s.endless = true
		return "", ""
	}
	s.seen[t] = true
	defer func() { s.seen[t] = false }()
	return s.checkFields(t, names)
}

// tag is a field's name and options in its tag, by the rules of attributevalue.
func (c *coding) tag(f reflect.StructField) (name string, options []string) {
	for _, key := range slices.Compact([]string{defaultTag, c.tagKey()}) {
		if tag := f.Tag.Get(key); tag != "" {
			parts := strings.Split(tag, ",")
			name, options = parts[0], append(options, parts[1:]...)
		}
	}
	return name, options
}

const defaultTag = "dynamodbav"

func (c *coding) tagKey() string {
	if c.options.TagKey == "" {
		return defaultTag
	}
	return c.options.TagKey
}

// isSet reports whether a field is kept as a set: its type's owner knows that it has no
// order.
func isSet(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return o == "stringset" || o == "numberset" || o == "binaryset" })
}

func isTime(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.ConvertibleTo(timeType) }

// codesItself reports whether values of a type encode and decode themselves. A pointer does
// not, nor an interface: what it leads to may.
func (c *coding) codesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	both := func(write, read reflect.Type) bool { return p.Implements(write) && p.Implements(read) }
	return both(reflect.TypeFor[attributevalue.Marshaler](), reflect.TypeFor[attributevalue.Unmarshaler]()) ||
		c.options.UseEncodingMarshalers && (both(reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()) ||
			both(reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler]()))
}

// codesKey reports whether values of a type can be keys of a map that is kept.
func codesKey(t reflect.Type) bool {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}
