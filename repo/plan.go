package repo

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/redact"
)

// plan is how the fields of a type are coded, made once per table, while
// attributevalue looks at every field of every value. It codes those itself
// that leave no choice: texts, numbers, truths and lists of texts. All else, in
// the type or in an item, attributevalue decides: the result is always as if
// there were no plan.
type plan struct {
	fields         []planned // in the order of their names
	others         []planned // those of them that attributevalue codes, and lists
	texts, numbers int       // how many of the fields are such
}

// Those of a plan: with options of its user's there is none.
var (
	encoder = attributevalue.NewEncoder(func(o *attributevalue.EncoderOptions) { o.EncodeTime = encodeTime })
	decoder = attributevalue.NewDecoder()
)

type planned struct {
	name      string
	index     []int
	kind      reflect.Kind // String, Bool, Int64, Uint64, Float32, Float64; Slice: of texts; Invalid: anything
	omitEmpty bool
	key       bool
}

// newPlan returns nil for a type that attributevalue must code as a whole.
func newPlan(t reflect.Type, fields []field) *plan {
	if codesItself(t) {
		return nil
	}
	p := &plan{}
	for _, f := range fields {
		as, ok := plannedOf(t, f)
		if !ok {
			return nil
		}
		p.fields = append(p.fields, as)
	}
	slices.SortFunc(p.fields, func(a, b planned) int { return strings.Compare(a.name, b.name) })
	for _, f := range p.fields {
		switch f.kind {
		case reflect.Invalid, reflect.Slice:
			p.others = append(p.others, f)
		case reflect.String:
			p.texts++
		case reflect.Bool:
		default:
			p.numbers++
		}
	}
	return p
}

// plannedOf is how a field of a type is coded; false: not by itself.
func plannedOf(t reflect.Type, f field) (as planned, ok bool) {
	omit := len(f.options) == 1 && f.options[0] == "omitempty"
	if f.viaPtr || len(f.options) > 0 && !omit || t.FieldByIndex(f.index).Anonymous {
		return as, false
	}
	kind := planKind(f.typ)
	if kind == reflect.Invalid && !standsAlone(f.typ) {
		return as, false
	}
	return planned{name: f.name, index: f.index, kind: kind, omitEmpty: omit, key: f.role.name == "pk" || f.role.name == "sk"}, true
}

// codesItself reports whether attributevalue would ask the type.
func codesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(reflect.TypeFor[attributevalue.Unmarshaler]())
}

// standsAlone reports whether attributevalue makes the same of a value by
// itself as in a struct: at what an interface holds it looks in another way.
func standsAlone(t reflect.Type) bool {
	inner, _ := pointed(t)
	return inner.Kind() != reflect.Pointer && inner.Kind() != reflect.Interface
}

// numberText is how attributevalue knows texts that are numbers.
type numberText interface {
	Float64() (float64, error)
	Int64() (int64, error)
	String() string
}

// planKind is the kind by which the plan codes a type, Invalid if it does not.
func planKind(t reflect.Type) reflect.Kind {
	if codesItself(t) {
		return reflect.Invalid
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Float32, reflect.Float64:
		return t.Kind()
	case reflect.String:
		if !t.Implements(reflect.TypeFor[numberText]()) {
			return reflect.String
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return reflect.Int64
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return reflect.Uint64
	case reflect.Slice:
		if t == reflect.TypeFor[[]string]() {
			return reflect.Slice
		}
	}
	return reflect.Invalid
}

// encode is attributevalue.MarshalMap. Values of one type share an allocation.
func (p *plan) encode(v reflect.Value) (ddb.Item, error) {
	shared := values{make([]types.AttributeValueMemberS, 0, p.texts), make([]types.AttributeValueMemberN, 0, p.numbers)}
	return shared.encode(p.fields, nil, v)
}

// values are where those of an encoding are.
type values struct {
	texts   []types.AttributeValueMemberS
	numbers []types.AttributeValueMemberN
}

// encode encodes some fields of a struct, but for lists of texts that are in told.
func (in *values) encode(fields []planned, told ddb.Item, v reflect.Value) (item ddb.Item, err error) {
	for i := range fields {
		f := &fields[i]
		if f.kind == reflect.Slice && isTexts(told[f.name]) {
			continue
		}
		av, err := in.field(f, v.FieldByIndex(f.index))
		if err != nil {
			return nil, err
		}
		if av != nil {
			if item == nil {
				item = make(ddb.Item, len(fields))
			}
			item[f.name] = av
		}
	}
	return item, nil
}

// field encodes one field; nil if it is left out.
func (in *values) field(f *planned, v reflect.Value) (types.AttributeValue, error) {
	if f.omitEmpty && f.empty(v) {
		return nil, nil
	}
	switch f.kind {
	case reflect.Invalid:
		av, err := encodeValue(encoder, v)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", f.name, redact.Encoding(err))
		}
		return av, nil
	case reflect.String:
		in.texts = append(in.texts, types.AttributeValueMemberS{Value: v.String()})
		return &in.texts[len(in.texts)-1], nil
	case reflect.Bool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool()}, nil
	case reflect.Slice:
		return encodeTexts(*v.Addr().Interface().(*[]string)), nil
	}
	in.numbers = append(in.numbers, types.AttributeValueMemberN{Value: f.number(v)})
	return &in.numbers[len(in.numbers)-1], nil
}

func (f *planned) empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return false // whatever is in it
	case reflect.Array:
		return v.Len() == 0
	case reflect.Float32, reflect.Float64:
		return v.Float() == 0 // also the negative zero
	}
	return v.IsZero()
}

func (f *planned) number(v reflect.Value) string {
	switch f.kind {
	case reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float32:
		return strconv.FormatFloat(v.Float(), 'f', -1, 32)
	}
	return strconv.FormatFloat(v.Float(), 'f', -1, 64)
}

func encodeTexts(list []string) types.AttributeValue {
	if list == nil {
		return &types.AttributeValueMemberNULL{Value: true}
	}
	texts := make([]types.AttributeValueMemberS, len(list))
	all := make([]types.AttributeValue, len(list))
	for i, s := range list {
		texts[i].Value = s
		all[i] = &texts[i]
	}
	return &types.AttributeValueMemberL{Value: all}
}
