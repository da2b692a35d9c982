package repo

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
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
	if t.Implements(marshaler) {
		return true
	}
	p := reflect.PointerTo(t)
	return c.texts && (p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()))
}

func (c *codec) isText(t reflect.Type) bool { return t.Kind() == reflect.String && !c.marshals(t) }

// encodeItem encodes a struct.
func (c *codec) encodeItem(item any) (ddb.Item, error) {
	av, err := c.encoder.Encode(item)
	if err != nil {
		return nil, err
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
