// Package jsontype tells of a type whether JSON would leave out what its values have:
// then they would arrive as others, without an error.
package jsontype

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Check is the error of a type that JSON has nothing for, or of which it would leave out a
// field without being told to: by json:"-", or by one of the same name that is nested less.
// What is in an interface cannot be known, and one with methods can only be written.
func Check(t reflect.Type) error {
	if t == nil {
		return nil
	}
	if at, why := check(t, map[reflect.Type]bool{}); why != "" {
		return fmt.Errorf("a %v would not arrive as it is: %s", t, strings.TrimPrefix(at+" "+why, " "))
	}
	return nil
}

var codes = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// codesItself reports whether a type has a form of its own.
func codesItself(t reflect.Type) bool {
	for _, by := range codes {
		if t.Implements(by) || reflect.PointerTo(t).Implements(by) {
			return true
		}
	}
	return false
}

func check(t reflect.Type, seen map[reflect.Type]bool) (at, why string) {
	if seen[t] || t.Kind() != reflect.Interface && codesItself(t) {
		return "", ""
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		if why = doubled(t); why != "" {
			return "", why
		}
		return checkFields(t, seen)
	case reflect.Map:
		if !isKey(t.Key()) {
			return "", fmt.Sprintf("has keys of type %v, for which JSON has no text, or which it does not read back", t.Key())
		}
		return check(t.Elem(), seen)
	case reflect.Pointer, reflect.Array, reflect.Slice:
		return check(t.Elem(), seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return "", fmt.Sprintf("has the interface %v, to which nothing can be decoded", t)
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return "", fmt.Sprintf("has a %v, for which JSON has nothing", t.Kind())
	}
	return "", ""
}

// isKey reports whether JSON has a text for the keys of a map, and reads it back. For texts it
// asks no method that makes one.
func isKey(t reflect.Type) bool {
	makes, reads := t.Implements(reflect.TypeFor[encoding.TextMarshaler]()), reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	return t.Kind() == reflect.String || makes && reads || makes == reads && reflect.Int <= t.Kind() && t.Kind() <= reflect.Uintptr
}

// doubled tells of two fields of a struct, or of what it embeds, that have one name in JSON and
// are nested as deep, so that JSON leaves out one of them, or both.
func doubled(t reflect.Type) string {
	names, visited := map[string]int{}, map[reflect.Type]bool{}
	for depth, level := 1, []reflect.Type{t}; len(level) > 0; depth++ {
		var next []reflect.Type
		for _, outer := range level {
			visited[outer] = true
			for i := range outer.NumField() {
				f := outer.Field(i)
				name, inner := nameOf(f)
				switch {
				case inner != nil && !visited[inner]:
					next = append(next, inner)
				case name != "" && names[name] == depth:
					return fmt.Sprintf("has two fields with the name %q in JSON, which leaves out one of them, or both", name)
				case name != "" && names[name] == 0:
					names[name] = depth
				}
			}
		}
		level = next
	}
	return ""
}

// nameOf is the name of a field in JSON, "" without one; of a struct that is embedded JSON has
// the fields in its place.
func nameOf(f reflect.StructField) (name string, embedded reflect.Type) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	inner := f.Type
	if inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	switch {
	case f.Tag.Get("json") == "-":
		return "", nil
	case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
		return "", inner
	case !f.IsExported():
		return "", nil
	}
	return cmp.Or(name, f.Name), nil
}

func checkFields(t reflect.Type, seen map[reflect.Type]bool) (at, why string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" || f.Tag.Get("json") == "-" {
			continue
		}
		inside := f.Anonymous && f.Type.Kind() == reflect.Struct // JSON has its exported fields
		if !f.IsExported() && !inside {
			return f.Name, "is unexported, and JSON leaves it out: the tag `json:\"-\"` says that it may"
		}
		if at, why = check(f.Type, seen); why != "" {
			return strings.TrimSuffix(f.Name+"."+at, "."), why
		}
	}
	return "", ""
}
