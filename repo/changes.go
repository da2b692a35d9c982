package repo

import (
	"math"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Start decodes an item for a change, with what [mapping.Changes] compares with beside
// the two items: the encoding of those fields that a change may alter in place, as far as
// the stored item does not tell it. ok is false where Changes cannot be asked: then before
// is the whole encoding.
func (t *mapping) Start(raw ddb.Item) (item any, before ddb.Item, ok bool, err error) {
	if item, err = t.Decode(raw); err != nil {
		return nil, nil, false, err
	}
	if t.plan == nil || t.prefixed() || t.core.Shares || t.core.HasRoles() || t.core.EventTime != "" {
		before, err = t.Encode(item)
		return item, before, false, err
	}
	before, err = encoded(t, (*mapping).alterable, change{raw: raw, item: item})
	return item, before, true, err
}

// change is an item as it is decoded from raw and after it, with what Start has kept.
type change struct {
	raw, before ddb.Item
	was, item   any
}

// alterable encodes what a change may alter in place, as far as the stored item does not tell it.
func (t *mapping) alterable(c change) (ddb.Item, error) {
	return new(values).encode(t.plan.others, c.raw, valueOf(c.item))
}

// Changes is what differs between an item and was, the one that Start has decoded from
// raw, as the comparison of both encodings says it: without them, for most fields of most
// items are as they were. ok is false if the key is another one.
func (t *mapping) Changes(raw, before ddb.Item, was, item any) (d ddb.Diff, ok bool, err error) {
	of, err := encoded(t, (*mapping).changes, change{raw, before, was, item})
	return of.Diff, of.sameKey, err
}

// changed is what [mapping.Changes] has found.
type changed struct {
	ddb.Diff
	sameKey bool
}

// changes is Changes.
func (t *mapping) changes(c change) (d changed, err error) {
	was, item := valueOf(c.was), valueOf(c.item)
	var encoded values
	for i := range t.plan.fields {
		f := &t.plan.fields[i]
		had, v := c.before[f.name], item.FieldByIndex(f.index)
		switch old := was.FieldByIndex(f.index); {
		case f.kind == reflect.Invalid:
		case f.kind != reflect.Slice:
			if same(old, v) {
				continue
			}
			had = another
		case isTexts(c.raw[f.name]):
			if had = c.raw[f.name]; sameTexts(had, *v.Addr().Interface().(*[]string)) {
				continue
			}
		}
		is, err := encoded.field(f, v)
		switch {
		case err != nil:
			return d, err
		case had == nil && is == nil, had != nil && is != nil && ddb.Equal(had, is):
		case f.key:
			return d, nil
		case is != nil:
			d.Set = append(d.Set, ddb.Attribute{Name: f.name, Value: is})
		default:
			d.Remove = append(d.Remove, f.name)
		}
	}
	d.sameKey = true
	return d, nil
}

// another stands for what a text, number or truth was that is not as it was: if it is left
// out now it was not before.
var another types.AttributeValue = &types.AttributeValueMemberNULL{}

// same compares such fields: what is no number is as it was, too.
func same(a, b reflect.Value) bool {
	return a.Equal(b) || a.CanFloat() && math.IsNaN(a.Float()) && math.IsNaN(b.Float())
}

// isTexts reports whether a stored value is a list of texts.
func isTexts(av types.AttributeValue) bool {
	l, ok := av.(*types.AttributeValueMemberL)
	return ok && !slices.ContainsFunc(l.Value, func(av types.AttributeValue) bool {
		_, text := av.(*types.AttributeValueMemberS)
		return !text
	})
}

// sameTexts compares one with a field.
func sameTexts(av types.AttributeValue, texts []string) bool {
	return texts != nil && slices.EqualFunc(av.(*types.AttributeValueMemberL).Value, texts, func(av types.AttributeValue, s string) bool {
		return av.(*types.AttributeValueMemberS).Value == s
	})
}
