package ddb

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attribute is a named value.
type Attribute struct {
	Name  string
	Value types.AttributeValue
}

// Diff is what a change did to the attributes of the user's type.
type Diff struct {
	Set    []Attribute
	Remove []string
}

// Empty reports whether nothing changed.
func (d Diff) Empty() bool { return len(d.Set)+len(d.Remove) == 0 }

// Has reports whether it sets or removes an attribute.
func (d Diff) Has(name string) bool {
	return slices.Contains(d.Remove, name) || slices.ContainsFunc(d.Set, func(a Attribute) bool { return a.Name == name })
}

// Diff compares two encodings of the user's type, by the names it maps: what
// the type does not know is never touched.
func (t *Table) Diff(before, after Item) (d Diff) {
	for _, name := range t.Mapped {
		was, had := before[name]
		is, has := after[name]
		switch {
		case has && (!had || !Equal(was, is)):
			d.Set = append(d.Set, Attribute{name, is})
		case had && !has:
			d.Remove = append(d.Remove, name)
		}
	}
	return d
}

// Whole is the difference that makes an item equal to an encoding whatever it
// was before, as far as the type knows its attributes.
func (t *Table) Whole(item Item) (d Diff) {
	for _, name := range t.Mapped {
		if v, ok := item[name]; ok {
			d.Set = append(d.Set, Attribute{name, v})
		} else {
			d.Remove = append(d.Remove, name)
		}
	}
	return d
}

// Without returns the difference without one attribute, which the caller
// writes in its own way; as it is where the type has no such attribute.
func (d Diff) Without(name string) Diff {
	if name == "" || !d.Has(name) {
		return d
	}
	set := slices.DeleteFunc(slices.Clone(d.Set), func(a Attribute) bool { return a.Name == name })
	return Diff{Set: set, Remove: slices.DeleteFunc(slices.Clone(d.Remove), func(n string) bool { return n == name })}
}

// Equal compares two values as DynamoDB does: numbers by value, sets without
// order.
func Equal(a, b types.AttributeValue) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return a.Value == b.(*types.AttributeValueMemberS).Value
	case *types.AttributeValueMemberN:
		return equalNumber(a.Value, b.(*types.AttributeValueMemberN).Value)
	case *types.AttributeValueMemberB:
		return bytes.Equal(a.Value, b.(*types.AttributeValueMemberB).Value)
	case *types.AttributeValueMemberBOOL:
		return a.Value == b.(*types.AttributeValueMemberBOOL).Value
	case *types.AttributeValueMemberNULL:
		return a.Value == b.(*types.AttributeValueMemberNULL).Value
	case *types.AttributeValueMemberL:
		return slices.EqualFunc(a.Value, b.(*types.AttributeValueMemberL).Value, Equal)
	case *types.AttributeValueMemberM:
		return EqualItems(a.Value, b.(*types.AttributeValueMemberM).Value)
	case *types.AttributeValueMemberSS:
		return equalSets(a.Value, b.(*types.AttributeValueMemberSS).Value, func(x, y string) bool { return x == y })
	case *types.AttributeValueMemberNS:
		return equalSets(a.Value, b.(*types.AttributeValueMemberNS).Value, equalNumber)
	case *types.AttributeValueMemberBS:
		return equalSets(a.Value, b.(*types.AttributeValueMemberBS).Value, bytes.Equal)
	}
	return false
}

// EqualItems compares maps of values.
func EqualItems(a, b Item) bool { return maps.EqualFunc(a, b, Equal) }

// EqualIn reports whether two items have the same of some attributes, or both have none.
func EqualIn(a, b Item, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		one, has := a[name]
		other, had := b[name]
		return has != had || has && !Equal(one, other)
	})
}

func equalNumber(a, b string) bool { return a == b || canonical(a) == canonical(b) }

func equalSets[E any](a, b []E, eq func(E, E) bool) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x E) bool {
		return !slices.ContainsFunc(b, func(y E) bool { return eq(x, y) })
	})
}
