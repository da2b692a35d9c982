package protocol

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Order is what an image tells of who came before whom: the holder, and those who wait.
func (c *Core) Order(item ddb.Item) (order []string) {
	if by, ok := item[c.Attr.LockedBy].(*types.AttributeValueMemberS); ok {
		order = append(order, stored.EntryOf(by.Value))
	}
	for _, e := range c.ParseQueue(item) {
		order = append(order, e.ID)
	}
	return order
}

// Follows reports whether an order shows that an entry is the same one as in an earlier
// order: somebody else is there who stands on the same side of it as before. Whose entry
// is taken out of the queue loses all who stood before it there, and whoever comes since
// with the same entry stands behind the others.
func Follows(entry string, before, now []string) bool {
	was, is := slices.Index(before, entry), slices.Index(now, entry)
	if was < 0 || is < 0 {
		return false
	}
	for i, other := range now {
		at := slices.Index(before, other)
		if other != entry && other != "" && at >= 0 && (at < was) == (i < is) {
			return true
		}
	}
	return false
}
