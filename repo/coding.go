package repo

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"

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

// checkOptions refuses tags whose meaning would be lost in writing: the item of another
// mapper would change its form, without a word, where a field is changed.
func (c *codec) checkOptions(t reflect.Type, within ...reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || c.marshals(t) || slices.Contains(within, t) {
		return nil
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options := nameOf(sf, c.tagKey)
		if name == "-" || !sf.IsExported() && !sf.Anonymous {
			continue
		}
		if err := c.checkField(sf, name, options); err != nil {
			return err
		}
		if err := c.checkOptions(sf.Type, append(slices.Clone(within), t)...); err != nil {
			return err
		}
	}
	return nil
}

// sets are the options by which attributevalue writes a slice as a set.
var sets = []string{"stringset", "numberset", "binaryset"}

// checkField refuses a field whose options, or methods, attributevalue does not know.
func (c *codec) checkField(sf reflect.StructField, name string, options []string) error {
	isTime := sf.Type == timeType || sf.Type == reflect.PointerTo(timeType)
	isSet := slices.ContainsFunc(options, func(option string) bool { return slices.Contains(sets, option) })
	_, theirs := reflect.PointerTo(sf.Type).MethodByName("MarshalDynamo")
	switch {
	case isTime && c.texts && slices.Contains(options, "unixtime"):
		return fmt.Errorf("field %s would encode itself as a text (UseEncodingMarshalers), whatever its option unixtime says: use attributevalue.UnixTime, or an integer", sf.Name)
	case !isSet && slices.Contains(options, "set"):
		return fmt.Errorf("field %s has the option set, which attributevalue does not know, and would become a list: add stringset, numberset or binaryset, as in `dynamodbav:\"%s,stringset\"`", sf.Name, name)
	case isSet && sf.Type.Kind() == reflect.Map:
		return fmt.Errorf("field %s is a set of type %v, which attributevalue writes as a map: use a slice", sf.Name, sf.Type)
	case theirs && c.tagKey == "dynamo" && !c.marshals(sf.Type):
		return fmt.Errorf("field %s has the method MarshalDynamo of guregu/dynamo, which attributevalue does not call: give it MarshalDynamoDBAttributeValue and UnmarshalDynamoDBAttributeValue, which both call", sf.Name)
	}
	return nil
}
