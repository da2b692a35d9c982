package repo

import (
	"reflect"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// decode is attributevalue.UnmarshalMap; false where that must decide.
func (p *plan) decode(raw ddb.Item, v reflect.Value) bool {
	for i := range p.fields {
		f := &p.fields[i]
		if av, ok := raw[f.name]; ok && !f.decode(av, v.FieldByIndex(f.index)) {
			return false
		}
	}
	return true
}

func (f *planned) decode(av types.AttributeValue, v reflect.Value) bool {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		if f.kind == reflect.String {
			v.SetString(av.Value)
			return true
		}
	case *types.AttributeValueMemberN:
		if f.kind != reflect.Invalid {
			return f.decodeNumber(av.Value, v)
		}
	case *types.AttributeValueMemberBOOL:
		if f.kind == reflect.Bool {
			v.SetBool(av.Value)
			return true
		}
	case *types.AttributeValueMemberL:
		if f.kind == reflect.Slice {
			list, ok := decodeTexts(av.Value)
			*v.Addr().Interface().(*[]string) = list
			return ok
		}
	}
	return f.kind == reflect.Invalid && decoder.Decode(av, v.Addr().Interface()) == nil
}

func (f *planned) decodeNumber(s string, v reflect.Value) bool {
	switch f.kind {
	case reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v.OverflowInt(n) {
			return false
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v.OverflowUint(n) {
			return false
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || v.OverflowFloat(n) {
			return false
		}
		v.SetFloat(n)
	default:
		return false
	}
	return true
}

func decodeTexts(all []types.AttributeValue) ([]string, bool) {
	list := make([]string, len(all))
	for i, av := range all {
		s, ok := av.(*types.AttributeValueMemberS)
		if !ok {
			return nil, false
		}
		list[i] = s.Value
	}
	return list, true
}
