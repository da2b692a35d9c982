package ddb

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// KeyText is a text for a primary key that no other key of the table has, for
// use as the key of a map. Equal numbers have the same text, however they are written.
func (t *Table) KeyText(key Item) string {
	pk := ScalarText(key[t.Partition])
	if t.Sort == "" {
		return pk
	}
	// The length keeps ("a", "bc") from ("ab", "c").
	return strconv.Itoa(len(pk)) + ":" + pk + ScalarText(key[t.Sort])
}

// Key is a primary key in a fifth of the memory that a map takes: for those who
// keep many.
type Key struct{ partition, sort types.AttributeValue }

// Pack makes a Key of the map that requests take.
func (t *Table) Pack(key Item) Key {
	k := Key{partition: key[t.Partition]}
	if t.Sort != "" {
		k.sort = key[t.Sort]
	}
	return k
}

// Unpack is the opposite of Pack.
func (t *Table) Unpack(k Key) Item {
	if t.Sort == "" {
		return Item{t.Partition: k.partition}
	}
	return Item{t.Partition: k.partition, t.Sort: k.sort}
}

// ScalarText is a text for a string, a number or bytes; "" for other values. Equal numbers
// have the same text, however they are written.
func ScalarText(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return canonical(v.Value)
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}

// Key takes the primary key out of an item.
func (t *Table) Key(item Item) Item {
	key := Item{t.Partition: item[t.Partition]}
	if t.Sort != "" {
		key[t.Sort] = item[t.Sort]
	}
	return key
}

// IsKey reports whether an attribute belongs to the primary key.
func (t *Table) IsKey(name string) bool {
	return name == t.Partition || (t.Sort != "" && name == t.Sort)
}

// Absent reports whether the image of a failed condition means that there is
// no item. Some engines return the key of an item that does not exist.
func (t *Table) Absent(image Item) bool {
	for name := range image {
		if !t.IsKey(name) {
			return false
		}
	}
	return true
}
