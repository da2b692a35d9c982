package ddb

import (
	"bytes"
	"math/big"
	"slices"
	"strings"

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
	named := func(a Attribute) bool { return a.Name == name }
	if name == "" || !slices.ContainsFunc(d.Set, named) && !slices.Contains(d.Remove, name) {
		return d
	}
	return Diff{
		Set:    slices.DeleteFunc(slices.Clone(d.Set), named),
		Remove: slices.DeleteFunc(slices.Clone(d.Remove), func(n string) bool { return n == name }),
	}
}

// Equal compares two values as DynamoDB does: numbers by value, sets without
// order.
func Equal(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && equalNumber(a.Value, b.Value)
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberBOOL:
		b, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberNULL:
		b, ok := b.(*types.AttributeValueMemberNULL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberL:
		b, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(a.Value, b.Value, Equal)
	case *types.AttributeValueMemberM:
		b, ok := b.(*types.AttributeValueMemberM)
		return ok && EqualItems(a.Value, b.Value)
	case *types.AttributeValueMemberSS:
		b, ok := b.(*types.AttributeValueMemberSS)
		return ok && equalSets(a.Value, b.Value, func(x, y string) bool { return x == y })
	case *types.AttributeValueMemberNS:
		b, ok := b.(*types.AttributeValueMemberNS)
		return ok && equalSets(a.Value, b.Value, equalNumber)
	case *types.AttributeValueMemberBS:
		b, ok := b.(*types.AttributeValueMemberBS)
		return ok && equalSets(a.Value, b.Value, bytes.Equal)
	}
	return false
}

// EqualItems compares maps of values.
func EqualItems(a, b Item) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}

func equalNumber(a, b string) bool {
	if a == b || (plain(a) && plain(b)) {
		return a == b
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// plain reports whether a number is written as encoders write integers: then
// different texts are different numbers.
func plain(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' {
		return s == "0"
	}
	return strings.Trim(digits, "0123456789") == ""
}

func equalSets[E any](a, b []E, eq func(E, E) bool) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x E) bool {
		return !slices.ContainsFunc(b, func(y E) bool { return eq(x, y) })
	})
}
