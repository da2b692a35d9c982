package repo

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/redact"
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
	if was, _, err = t.shown(before, false); err != nil {
		return nil, nil, false, err
	}
	if is, _, err = t.shown(after, false); err != nil {
		return nil, nil, false, err
	}
	if was == nil || is == nil {
		return was, is, was != nil || is != nil, nil
	}
	return was, is, !t.core.Diff(before, after).Empty(), nil
}

// ParseImage reads an image in DynamoDB's own JSON, such as {"id": {"S": "a"}}: what
// json.Marshal makes of an image in an event of the package aws-lambda-go. null is
// no image. ErrSchema for anything else.
func ParseImage(image []byte) (map[string]types.AttributeValue, error) {
	item, err := attributevalue.UnmarshalMapJSON(image)
	if err != nil { // whose text may have values
		return nil, fmt.Errorf("%w: the image is not DynamoDB's JSON: %w", ErrSchema, redact.Error(err))
	}
	if len(item) == 0 {
		return nil, nil
	}
	for name, v := range item {
		if !isWhole(v) {
			return nil, fmt.Errorf("%w: attribute %q: it has none of DynamoDB's types", ErrSchema, name)
		}
	}
	return item, nil
}

// isWhole reports whether a value, and all within, has one of DynamoDB's types: the
// SDK leaves nil where there is none.
func isWhole(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		return !slices.ContainsFunc(v.Value, func(inner types.AttributeValue) bool { return !isWhole(inner) })
	case *types.AttributeValueMemberM:
		for _, inner := range v.Value {
			if !isWhole(inner) {
				return false
			}
		}
	}
	return ddb.TypeName(v) != "unknown"
}
