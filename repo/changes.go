package repo

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Start decodes an item for a change, with what [mapping.Changes] compares with beside
// the stored item: the encoding of those fields of which that does not tell how they
// were. ok is false where Changes cannot be asked: then before is the whole encoding.
func (t *mapping) Start(raw ddb.Item) (item any, before ddb.Item, ok bool, err error) {
	if item, err = t.Decode(raw); err != nil {
		return nil, nil, false, err
	}
	if t.plan == nil || t.prefixed() || t.core.Shares || t.core.HasRoles() || t.core.EventTime != "" || !t.plan.tells(raw) {
		before, err = t.Encode(item)
		return item, before, false, err
	}
	before, err = t.encoded(func() (ddb.Item, error) { return new(values).encode(t.plan.others, valueOf(item)) })
	return item, before, true, err
}

// Changes is what differs between an item and the one that Start has decoded from raw,
// as the comparison of both encodings says it: without them, for most fields of most
// items are as they were. ok is false if the key is another one.
func (t *mapping) Changes(raw, before ddb.Item, item any) (d ddb.Diff, ok bool, err error) {
	_, err = t.encoded(func() (ddb.Item, error) {
		d, ok, err = t.plan.changes(raw, before, valueOf(item))
		return nil, err
	})
	return d, ok, err
}

// tells reports whether the stored values of all fields but those that attributevalue
// codes are of the form in which the plan reads and writes them.
func (p *plan) tells(raw ddb.Item) bool {
	for i := range p.fields {
		f := &p.fields[i]
		if f.kind == reflect.Invalid {
			continue
		}
		fits := false
		switch av := raw[f.name].(type) {
		case nil:
			fits = true
		case *types.AttributeValueMemberS:
			fits = f.kind == reflect.String
		case *types.AttributeValueMemberBOOL:
			fits = f.kind == reflect.Bool
		case *types.AttributeValueMemberL:
			fits = f.kind == reflect.Slice && !slices.ContainsFunc(av.Value, notText)
		case *types.AttributeValueMemberNULL:
			fits = f.kind == reflect.Slice
		case *types.AttributeValueMemberN:
			fits = f.kind != reflect.String && f.kind != reflect.Bool && f.kind != reflect.Slice
		}
		if !fits {
			return false
		}
	}
	return true
}

func notText(av types.AttributeValue) bool {
	_, text := av.(*types.AttributeValueMemberS)
	return !text
}

// changes is Changes.
func (p *plan) changes(raw, rest ddb.Item, v reflect.Value) (d ddb.Diff, sameKey bool, err error) {
	var changed values
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.FieldByIndex(f.index)
		if f.kind != reflect.Invalid && f.isAs(raw[f.name], fv) {
			continue
		}
		is, err := changed.field(f, fv)
		if err != nil {
			return d, false, err
		}
		had := f.had(raw[f.name])
		if f.kind == reflect.Invalid {
			was := rest[f.name]
			if had = was != nil; had && is != nil && ddb.Equal(was, is) || !had && is == nil {
				continue
			}
		}
		switch {
		case f.key:
			return d, false, nil
		case is != nil:
			d.Set = append(d.Set, ddb.Attribute{Name: f.name, Value: is})
		case had:
			d.Remove = append(d.Remove, f.name)
		}
	}
	return d, true, nil
}

// isAs reports whether a field is as it was decoded from a stored value that tells it;
// nil: from none.
func (f *planned) isAs(av types.AttributeValue, fv reflect.Value) bool {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return fv.String() == av.Value
	case *types.AttributeValueMemberBOOL:
		return fv.Bool() == av.Value
	case *types.AttributeValueMemberN:
		return f.isNumber(av.Value, fv)
	case *types.AttributeValueMemberL:
		return isTexts(av.Value, *fv.Addr().Interface().(*[]string))
	}
	if f.kind == reflect.Float32 || f.kind == reflect.Float64 {
		return fv.Float() == 0 // also the negative zero
	}
	return fv.IsZero()
}

func (f *planned) isNumber(s string, fv reflect.Value) bool {
	switch f.kind {
	case reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && n == fv.Int()
	case reflect.Uint64:
		n, err := strconv.ParseUint(s, 10, 64)
		return err == nil && n == fv.Uint()
	case reflect.Float32:
		n, err := strconv.ParseFloat(s, 64)
		return err == nil && float64(float32(n)) == fv.Float()
	}
	n, err := strconv.ParseFloat(s, 64)
	return err == nil && n == fv.Float()
}

func isTexts(all []types.AttributeValue, list []string) bool {
	if list == nil || len(all) != len(list) {
		return false
	}
	for i, av := range all {
		if s, ok := av.(*types.AttributeValueMemberS); !ok || s.Value != list[i] {
			return false
		}
	}
	return true
}

// had reports whether the encoding of what a stored value was decoded to has a field
// that is left out where it is empty.
func (f *planned) had(av types.AttributeValue) bool {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return av.Value != ""
	case *types.AttributeValueMemberBOOL:
		return av.Value
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseFloat(av.Value, 64)
		return err != nil || n != 0
	case *types.AttributeValueMemberL:
		return true // also one without texts
	}
	return false
}
