package repo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dynahold/dynahold/internal/stored"
)

// fieldsOf are the attributes of a struct, by a tag key.
func fieldsOf(t reflect.Type, tagKey string) ([]field, error) {
	fields, err := collect(t, tagKey, nil, false)
	if err != nil {
		return nil, err
	}
	return dominant(fields)
}

// collect lists the attributes of a struct as attributevalue encodes it with a tag
// key: exported fields, embedded structs flattened.
func collect(t reflect.Type, tagKey string, index []int, viaPtr bool, within ...reflect.Type) ([]field, error) {
	if slices.Contains(within, t) {
		return nil, fmt.Errorf("struct %v embeds itself: give the inner one a name", t)
	}
	var all []field
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		if err := checkTag(sf, tagKey); err != nil {
			return nil, err
		}
		name, options := nameOf(sf, tagKey)
		form := formOf(sf, name)
		if err := checkPlace(sf, form); err != nil {
			return nil, err
		}
		switch form {
		case flattened:
			inner, ptr := pointed(sf.Type)
			fields, err := collect(inner, tagKey, at, viaPtr || ptr, append(slices.Clone(within), t)...)
			if err != nil {
				return nil, err
			}
			all = append(all, fields...)
		case attribute:
			if name == "" {
				name = sf.Name
			}
			f := field{name: name, goName: sf.Name, index: at, typ: sf.Type, options: options, viaPtr: viaPtr}
			if role := sf.Tag.Get("repo"); role != "" {
				f.role, _ = parseRole(role) // checkTag has
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// form is how a field of a struct is stored.
type form int

const (
	unstored  form = iota
	ignored        // not stored either, as the encoder does with embedded types that are no structs
	flattened      // an embedded struct: its fields are stored beside those around it
	attribute
)

// formOf is the form of a field whose tags name an attribute, "" without.
func formOf(sf reflect.StructField, name string) form {
	switch inner, _ := pointed(sf.Type); {
	case name == "-", !sf.IsExported() && !sf.Anonymous:
		return unstored
	case sf.Anonymous && name == "" && inner.Kind() == reflect.Struct && inner != timeType:
		return flattened
	case !sf.IsExported():
		return ignored
	}
	return attribute
}

// checkPlace refuses a field with a role where none can be, and one that cannot be decoded.
func checkPlace(sf reflect.StructField, as form) error {
	role := sf.Tag.Get("repo")
	inner, ptr := pointed(sf.Type)
	switch {
	case as == unstored && role != "":
		return fmt.Errorf("field %s has the role %q but is not stored (unexported, or dynamodbav:\"-\"): export it and give it a name", sf.Name, role)
	case as == flattened && role != "":
		return fmt.Errorf("embedded struct %s has the role %q: give it to a field inside", sf.Name, role)
	case as == flattened && ptr && !sf.IsExported():
		return fmt.Errorf("embedded pointer to the unexported struct %s cannot be decoded: embed the struct itself", sf.Name)
	case as == attribute && inner.Kind() == reflect.Struct:
		if nested := findRole(inner, nil); nested != "" {
			return fmt.Errorf("field %s is stored as one attribute (a map), so the role inside it, at %s, has no attribute of its own: embed the struct without a dynamodbav name, or move the field up", sf.Name, nested)
		}
	}
	return nil
}

// pointed is what a type points to, or the type itself.
func pointed(t reflect.Type) (inner reflect.Type, ptr bool) {
	if t.Kind() == reflect.Pointer {
		return t.Elem(), true
	}
	return t, false
}

// dynamodbav is the tag key that attributevalue always reads.
const dynamodbav = "dynamodbav"

// nameOf is the attribute's name in a field's tags, and its options. A tag of
// another key comes over that of attributevalue's own, whose options stay.
func nameOf(sf reflect.StructField, tagKey string) (name string, options []string) {
	for _, key := range slices.Compact([]string{dynamodbav, tagKey}) {
		if tag := sf.Tag.Get(key); tag != "" {
			parts := strings.Split(tag, ",")
			name, options = parts[0], append(options, parts[1:]...)
		}
	}
	return name, options
}

// findRole looks for a repo tag inside a struct that is stored as a map.
func findRole(t reflect.Type, seen []reflect.Type) string {
	if t == timeType || slices.Contains(seen, t) {
		return ""
	}
	seen = append(seen, t)
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Tag.Get("repo") != "" {
			return t.Name() + "." + sf.Name
		}
		if inner, _ := pointed(sf.Type); inner.Kind() == reflect.Struct {
			if at := findRole(inner, seen); at != "" {
				return at
			}
		}
	}
	return ""
}

// checkTag finds typing errors in a field's tags.
func checkTag(sf reflect.StructField, tagKey string) error {
	if tag, ok := sf.Tag.Lookup("repo"); ok {
		if _, err := parseRole(tag); err != nil {
			return fmt.Errorf("field %s has %w", sf.Name, err)
		}
	}
	rest := string(sf.Tag)
	for rest != "" {
		rest = strings.TrimLeft(rest, " ")
		key, after, ok := strings.Cut(rest, ":\"")
		if !ok {
			if strings.Contains(rest, "repo") || strings.Contains(rest, "dynamodbav") {
				return fmt.Errorf("field %s has a tag that cannot be parsed: %q; the form is `key:\"value\"`", sf.Name, sf.Tag)
			}
			return nil
		}
		if key != tagKey && (near(key, "repo", 1) || near(key, dynamodbav, 2)) {
			return fmt.Errorf("field %s has the tag %q: did you mean repo or dynamodbav?", sf.Name, key)
		}
		_, rest, _ = strings.Cut(after, "\"")
	}
	return nil
}

// near reports whether s is not word but at most limit edits away from it.
func near(s, word string, limit int) bool {
	return s != word && stored.Distance(s, word) <= limit
}

// dominant keeps, of fields that map the same attribute, the least nested one,
// as the encoder does, and refuses those that nothing decides between.
func dominant(fields []field) (kept []field, err error) {
	slices.SortStableFunc(fields, func(a, b field) int { return len(a.index) - len(b.index) })
	for _, f := range fields {
		i := slices.IndexFunc(kept, func(k field) bool { return k.name == f.name })
		switch {
		case i < 0:
			kept = append(kept, f)
		case len(kept[i].index) == len(f.index):
			return nil, fmt.Errorf("fields %s and %s both map attribute %q: give one of them another name", kept[i].goName, f.goName, f.name)
		case f.role.name != "":
			return nil, fmt.Errorf("field %s with the role %q is hidden by field %s, which maps the same attribute %q", f.goName, f.role.name, kept[i].goName, f.name)
		}
	}
	return kept, nil
}
