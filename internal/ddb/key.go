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

// Key is a primary key in a fifth of the memory that a map takes: for those who
// keep many.
type Key struct{ partition, sort types.AttributeValue }

// Pack makes a Key of the map that requests take.
func (c *Core) Pack(key Item) Key {
	k := Key{partition: key[c.Partition]}
	if c.Sort != "" {
		k.sort = key[c.Sort]
	}
	return k
}

// Unpack is the opposite of Pack.
func (c *Core) Unpack(k Key) Item {
	if c.Sort == "" {
		return Item{c.Partition: k.partition}
	}
	return Item{c.Partition: k.partition, c.Sort: k.sort}
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
