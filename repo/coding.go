package repo

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/redact"
)

// codec is attributevalue with the options of a table.
type codec struct {
	encoder *attributevalue.Encoder
	decoder *attributevalue.Decoder
	tagKey  string
	texts   bool // types of encoding.TextMarshaler and BinaryMarshaler encode themselves
	given   bool // the options are the user's
}

func newCodec(cfg TableConfig) (*codec, error) {
	c := &codec{encoder: encoder, decoder: decoder, tagKey: dynamodbav}
	if c.given = cfg.EncoderOptions != nil || cfg.DecoderOptions != nil; !c.given {
		return c, nil
	}
	tagKey := ""
	c.encoder = attributevalue.NewEncoder(func(o *attributevalue.EncoderOptions) {
		o.EncodeTime = encodeTime
		if cfg.EncoderOptions != nil {
			cfg.EncoderOptions(o)
		}
		c.tagKey, c.texts = o.TagKey, o.UseEncodingMarshalers
	})
	reads := false
	c.decoder = attributevalue.NewDecoder(func(o *attributevalue.DecoderOptions) {
		if cfg.DecoderOptions != nil {
			cfg.DecoderOptions(o)
		}
		tagKey, reads = o.TagKey, o.UseEncodingUnmarshalers
	})
	switch {
	case tagKey != c.tagKey:
		return nil, fmt.Errorf("%w: EncoderOptions have the TagKey %q, DecoderOptions %q: what is written would not be read back; set both", ErrConfig, c.tagKey, tagKey)
	case c.texts != reads:
		return nil, fmt.Errorf("%w: EncoderOptions have UseEncodingMarshalers %v, DecoderOptions UseEncodingUnmarshalers %v: what is written would not be read back; set both", ErrConfig, c.texts, reads)
	}
	return c, nil
}

// encodeTime is how attributevalue encodes a time, as RFC 3339, but for what that has no text
// for: a year of more than four digits, with which an item could never be read again, and an
// offset of seconds, such as zones had before 1900, by which the time would be another one.
func encodeTime(at time.Time) (types.AttributeValue, error) {
	if _, offset := at.Zone(); offset%60 != 0 || max(offset, -offset) >= 24*60*60 {
		at = at.UTC()
	}
	if year := at.Year(); year < 0 || year > 9999 {
		return nil, redact.Plain("a time is not of a year from 0 to 9999, and its text could not be read back: use attributevalue.UnixTime, the option unixtime, or an integer")
	}
	return ddb.Text(at.Format(time.RFC3339Nano)), nil
}

// marshals reports whether values of a type encode themselves.
func (c *codec) marshals(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if t.Implements(marshaler) || p.Implements(marshaler) {
		return true
	}
	return c.texts && (p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()))
}

func (c *codec) isText(t reflect.Type) bool { return t.Kind() == reflect.String && !c.marshals(t) }

// encodeValue encodes a value by itself as attributevalue does in a struct to which a
// pointer leads: methods of pointers are called, too. By a copy without an address it
// does not find them, and writes for a type that it decodes by them something else.
func encodeValue(by *attributevalue.Encoder, v reflect.Value) (types.AttributeValue, error) {
	if v.Kind() == reflect.Pointer || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() {
		return by.Encode(v.Interface())
	}
	if !v.CanAddr() {
		at := reflect.New(v.Type()).Elem()
		at.Set(v)
		v = at
	}
	return by.Encode(v.Addr().Interface())
}

// encodeItem encodes the struct that item points to.
func (c *codec) encodeItem(item any) (ddb.Item, error) {
	av, err := c.encoder.Encode(item)
	if err != nil {
		return nil, redact.Encoding(err)
	}
	m, ok := av.(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("it encodes itself to type %s, not to a map", ddb.TypeName(av))
	}
	return m.Value, nil
}

func (c *codec) decodeItem(raw ddb.Item, item any) error {
	return c.decoder.Decode(&types.AttributeValueMemberM{Value: raw}, item)
}

// checkStored refuses fields that would be lost in writing, without a word, or that could
// be written and never be read again. seen are the types that were looked at before.
func (c *codec) checkStored(fields []field, seen map[reflect.Type]bool) error {
	for _, f := range fields {
		if err := c.checkField(f); err != nil {
			return err
		}
		if err := c.checkType(f.typ, seen); err != nil {
			return fmt.Errorf("field %s of type %v: %w", f.goName, f.typ, err)
		}
	}
	return nil
}

// checkType is checkStored of what a type consists of.
func (c *codec) checkType(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || c.codes(t) {
		return nil
	}
	seen[t] = true
	var fields []field
	var err error
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		err = c.checkType(t.Elem(), seen)
	case reflect.Struct:
		fields, err = fieldsOf(t, c.tagKey)
	}
	if err != nil {
		return err
	}
	if why := c.unread(t, fields); why != "" {
		return fmt.Errorf("it would not be read back as it is written: %s; use another type, or leave it out by `%s:\"-\"`", why, c.tagKey)
	}
	return c.checkStored(fields, seen)
}

// codes reports whether a type has a form of its own; of an interface it is not known which.
func (c *codec) codes(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.ConvertibleTo(timeType) || t.Kind() != reflect.Interface &&
		(c.marshals(t) || p.Implements(unmarshaler) || c.texts && p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}

// unread is why values of a type, with such fields, do not come back; "" if they do.
func (c *codec) unread(t reflect.Type, fields []field) string {
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Sprintf("to the interface %v nothing can be decoded", t)
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.UnsafePointer:
		return fmt.Sprintf("a %v is not stored at all", t.Kind())
	case reflect.Map:
		if !c.keepsKeys(t.Key()) {
			return fmt.Sprintf("the text of a key that is a %v is not read back", t.Key())
		}
	case reflect.Struct:
		if len(fields) == 0 && hides(t) {
			return fmt.Sprintf("%v has no exported fields, and is stored as an empty map; one that encodes itself as a text needs UseEncodingMarshalers and UseEncodingUnmarshalers", t)
		}
	}
	return ""
}

// hides reports whether a struct has an unexported field, which is not told to be left out.
func hides(t reflect.Type) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return !f.IsExported() && !f.Anonymous && f.Name != "_" && f.Tag.Get(dynamodbav) != "-"
	})
}

// keepsKeys reports whether keys of maps are read back as they are written: by fmt.Sprint,
// so that one with a method String is another text, or no number any more.
func (c *codec) keepsKeys(t reflect.Type) bool {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	m := reflect.MakeMap(reflect.MapOf(t, reflect.TypeFor[bool]()))
	m.SetMapIndex(keySample(t), reflect.ValueOf(true))
	av, err := c.encoder.Encode(m.Interface())
	read := reflect.New(m.Type())
	return err == nil && c.decoder.Decode(av, read.Interface()) == nil && reflect.DeepEqual(read.Elem().Interface(), m.Interface())
}

// sets are the options by which attributevalue writes a slice as a set.
var sets = []string{"stringset", "numberset", "binaryset"}

// checkField refuses a field whose options, or methods, attributevalue does not know: the
// item of another mapper would change its form, without a word, where a field is changed.
func (c *codec) checkField(f field) error {
	isTime := f.typ == timeType || f.typ == reflect.PointerTo(timeType)
	isSet := slices.ContainsFunc(sets, f.has)
	_, theirs := reflect.PointerTo(f.typ).MethodByName("MarshalDynamo")
	switch {
	case !c.given:
		return nil
	case isTime && c.texts && f.has("unixtime"):
		return fmt.Errorf("field %s would encode itself as a text (UseEncodingMarshalers), whatever its option unixtime says: use attributevalue.UnixTime, or an integer", f.goName)
	case !isSet && f.has("set"):
		return fmt.Errorf("field %s has the option set, which attributevalue does not know, and would become a list: add stringset, numberset or binaryset, as in `dynamodbav:\"%s,stringset\"`", f.goName, f.name)
	case isSet && f.typ.Kind() == reflect.Map:
		return fmt.Errorf("field %s is a set of type %v, which attributevalue writes as a map: use a slice", f.goName, f.typ)
	case theirs && c.tagKey == "dynamo" && !c.marshals(f.typ):
		return fmt.Errorf("field %s has the method MarshalDynamo of guregu/dynamo, which attributevalue does not call: give it MarshalDynamoDBAttributeValue and UnmarshalDynamoDBAttributeValue, which both call", f.goName)
	}
	return nil
}
