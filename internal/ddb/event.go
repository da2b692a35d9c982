package ddb

import (
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// EventOrder compares the events of two items: negative if the first is older.
// Without event ids equal times are one event. It is false where they cannot be
// compared.
func (c *Core) EventOrder(a, b Item) (int, bool) {
	order, ok := Compare(a[c.EventTime], b[c.EventTime])
	if ok && order == 0 && c.EventID != "" {
		return Compare(a[c.EventID], b[c.EventID])
	}
	return order, ok
}

// Compare orders two values as DynamoDB does: integers by value, texts by
// bytes; nothing is smaller than anything. It is false for values of different
// or other types.
func Compare(a, b types.AttributeValue) (int, bool) {
	switch {
	case a == nil && b == nil:
		return 0, true
	case a == nil:
		return -1, true
	case b == nil:
		return 1, true
	}
	if x, ok := a.(*types.AttributeValueMemberS); ok {
		y, ok := b.(*types.AttributeValueMemberS)
		if !ok {
			return 0, false
		}
		return strings.Compare(x.Value, y.Value), true
	}
	x, okX := a.(*types.AttributeValueMemberN)
	y, okY := b.(*types.AttributeValueMemberN)
	if !okX || !okY {
		return 0, false
	}
	m, okM := new(big.Int).SetString(x.Value, 10)
	n, okN := new(big.Int).SetString(y.Value, 10)
	if !okM || !okN {
		return 0, false
	}
	return m.Cmp(n), true
}
