package ddb

import (
	"bytes"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Copy copies an item with all that can be changed in place.
func Copy(item Item) Item {
	c := make(Item, len(item))
	for name, v := range item {
		c[name] = CopyValue(v)
	}
	return c
}

// CopyValue copies a value with all that can be changed in place.
func CopyValue(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		c := make([][]byte, len(v.Value))
		for i, b := range v.Value {
			c[i] = bytes.Clone(b)
		}
		return &types.AttributeValueMemberBS{Value: c}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberL:
		c := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			c[i] = CopyValue(e)
		}
		return &types.AttributeValueMemberL{Value: c}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: Copy(v.Value)}
	}
	return v
}
