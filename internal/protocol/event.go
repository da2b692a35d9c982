package protocol

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/dynahold/dynahold/internal/ddb"
)

// EventOrder compares the events of two items: negative if the first is older.
// Without event ids equal times are one event. It is false where they cannot be
// compared.
func (c *Core) EventOrder(a, b ddb.Item) (int, bool) {
	order, ok := Compare(a[c.EventTime], b[c.EventTime])
	if ok && order == 0 && c.EventID != "" {
		return Compare(a[c.EventID], b[c.EventID])
	}
	return order, ok
}

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

// WholeSeconds refuses a time that would lose its fraction as whole seconds.
func WholeSeconds(at time.Time) error {
	if at.Nanosecond() == 0 {
		return nil
	}
	return errors.New("the event time has a fraction of a second, which its attribute cannot keep: truncate it, or use an integer of milliseconds with nolock.Config.Unit")
}
