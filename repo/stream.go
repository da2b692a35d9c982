package repo

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Images decodes the two images of a stream's record, in the types of the package
// dynamodb: what readers saw before, and what they see now, nil for no item. changed
// is false for a record of nothing but the library's own attributes, such as a lock
// that was taken or released: most consumers skip those. The stream's view must be
// NEW_AND_OLD_IMAGES.
//
// attributevalue.FromDynamoDBStreamsMap converts images of the SDK's package
// dynamodbstreams, [ParseImage] those of a Lambda function's event.
func (t *Table[T]) Images(before, after map[string]types.AttributeValue) (was, is *T, changed bool, err error) {
	a, b, changed, err := t.m.images(before, after)
	was, _ = a.(*T)
	is, _ = b.(*T)
	return was, is, changed, err
}

func (t *mapping) images(before, after ddb.Item) (was, is any, changed bool, err error) {
	if was, err = t.image(before); err != nil {
		return nil, nil, false, err
	}
	if is, err = t.image(after); err != nil {
		return nil, nil, false, err
	}
	if was == nil || is == nil {
		return was, is, was != nil || is != nil, nil
	}
	return was, is, !t.core.Diff(before, after).Empty(), nil
}

// image decodes an image of a stream; nil if readers see no item there.
func (t *mapping) image(raw ddb.Item) (any, error) {
	item, shown, err := t.shown(raw, &queryPlan{})
	if err != nil || !shown {
		return nil, err
	}
	return item, nil
}

// ParseImage reads an image in DynamoDB's own JSON, such as {"id": {"S": "a"}}: what
// json.Marshal makes of an image in an event of the package aws-lambda-go. null is
// no image. ErrSchema for anything else.
func ParseImage(image []byte) (map[string]types.AttributeValue, error) {
	var raw map[string]wireValue
	if err := json.Unmarshal(image, &raw); err != nil {
		return nil, fmt.Errorf("%w: the image is not DynamoDB's JSON: %w", ErrSchema, err)
	}
	return attributes(raw)
}

func attributes(raw map[string]wireValue) (item map[string]types.AttributeValue, err error) {
	if raw == nil {
		return nil, nil
	}
	item = make(map[string]types.AttributeValue, len(raw))
	for name, w := range raw {
		if item[name], err = w.value(); err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return item, nil
}

// wireValue is an attribute in DynamoDB's JSON: one of its fields is set.
type wireValue struct {
	S    *string               `json:",omitempty"`
	N    *string               `json:",omitempty"`
	B    *[]byte               `json:",omitempty"`
	BOOL *bool                 `json:",omitempty"`
	NULL *bool                 `json:",omitempty"`
	SS   []string              `json:",omitempty"`
	NS   []string              `json:",omitempty"`
	BS   [][]byte              `json:",omitempty"`
	L    *[]wireValue          `json:",omitempty"`
	M    *map[string]wireValue `json:",omitempty"`
}

// wireKey is a part of a key in that form.
func wireKey(v types.AttributeValue) (w wireValue) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		w.S = &v.Value
	case *types.AttributeValueMemberN:
		w.N = &v.Value
	case *types.AttributeValueMemberB:
		w.B = &v.Value
	}
	return w
}

func (w wireValue) value() (types.AttributeValue, error) {
	switch {
	case w.S != nil:
		return ddb.Text(*w.S), nil
	case w.N != nil:
		return ddb.Number(*w.N), nil
	case w.B != nil:
		return ddb.Bytes(*w.B), nil
	case w.BOOL != nil:
		return &types.AttributeValueMemberBOOL{Value: *w.BOOL}, nil
	case w.NULL != nil:
		return &types.AttributeValueMemberNULL{Value: *w.NULL}, nil
	case w.SS != nil:
		return &types.AttributeValueMemberSS{Value: w.SS}, nil
	case w.NS != nil:
		return &types.AttributeValueMemberNS{Value: w.NS}, nil
	case w.BS != nil:
		return &types.AttributeValueMemberBS{Value: w.BS}, nil
	case w.L != nil:
		list := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(*w.L))}
		var err error
		for i, inner := range *w.L {
			if list.Value[i], err = inner.value(); err != nil {
				return nil, err
			}
		}
		return list, nil
	case w.M != nil:
		m, err := attributes(*w.M)
		return &types.AttributeValueMemberM{Value: m}, err
	}
	return nil, fmt.Errorf("%w: it has none of DynamoDB's types", ErrSchema)
}
