package ddb

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Number is a numeric attribute value, from its decimal text.
func Number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// Integer is a numeric attribute value.
func Integer(n int64) types.AttributeValue { return Number(strconv.FormatInt(n, 10)) }

// Text is a string attribute value.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Bytes is a binary attribute value.
func Bytes(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// True is the attribute value of a mark.
func True() types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: true} }

// Time reads an attribute that is a number of Unix seconds, clamped to sensible
// times.
func Time(v types.AttributeValue) (time.Time, error) {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		if t, ok := ParseSeconds(n.Value); ok {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("type %s, not a number of Unix seconds", TypeName(v))
}

// Int reads an integer attribute.
func Int(v types.AttributeValue) (int64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("type %s, not a number", TypeName(v))
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0, errors.New("not a whole number of 64 bits")
	}
	return i, nil
}

// KeptText refuses a text that would not come back as it was sent: DynamoDB keeps
// UTF-8, and the SDK replaces all else on the way, so that what names something
// would name something else.
func KeptText(v types.AttributeValue) error {
	if s, ok := v.(*types.AttributeValueMemberS); ok && !utf8.ValidString(s.Value) {
		return errors.New("it is not valid UTF-8, which is all that DynamoDB keeps in strings")
	}
	return nil
}

// TypeName is DynamoDB's name of a value's type.
func TypeName(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	}
	return "unknown"
}
