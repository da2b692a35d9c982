package ddb

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// KeyText is a text for a primary key that no other key of the table has, for
// use as the key of a map.
func (c *Core) KeyText(key Item) string {
	pk := scalarText(key[c.Partition])
	if c.Sort == "" {
		return pk
	}
	// The length keeps ("a", "bc") from ("ab", "c").
	return strconv.Itoa(len(pk)) + ":" + pk + scalarText(key[c.Sort])
}

func scalarText(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}
