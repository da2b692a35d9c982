package ddb

import (
	"bytes"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Compare orders two values as DynamoDB does: numbers by value, texts and bytes
// by their bytes; nothing is smaller than anything. It is false for values of
// different or other types.
func Compare(a, b types.AttributeValue) (int, bool) {
	switch {
	case a == nil && b == nil:
		return 0, true
	case a == nil:
		return -1, true
	case b == nil:
		return 1, true
	}
	switch x := a.(type) {
	case *types.AttributeValueMemberS:
		if y, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberB:
		if y, ok := b.(*types.AttributeValueMemberB); ok {
			return bytes.Compare(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberN:
		if y, ok := b.(*types.AttributeValueMemberN); ok {
			m, okM := new(big.Rat).SetString(x.Value)
			n, okN := new(big.Rat).SetString(y.Value)
			if okM && okN {
				return m.Cmp(n), true
			}
		}
	}
	return 0, false
}
