package protocol

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

const (
	maxItem = 409_600
	// headroom is kept free for the lock attributes, so that an item that was
	// written can also be locked.
	headroom = 1024
)

// DynamoDB bounds an update as well as the item that it leaves: that item
// without its key, and so many bytes more, may have no more than maxItem.
const (
	updateBytes = 3
	setBytes    = 19 // for each attribute that is set
	removeBytes = 2  // for each that is removed, whether it is there or not
	// ownBytes is kept free, of the headroom, for what the library writes in the
	// same update: the version, the ring, the lock's end or its next holder.
	ownBytes = 512
)

// CheckSize refuses an update that DynamoDB would refuse, and one that leaves an
// item which could not be locked any more. What the library keeps on the item
// does not count, for the headroom is for that; but the ids of operations do, of
// which there are as many as users make, and the answers of delegated commands.
func (c *Core) CheckSize(item ddb.Item, d ddb.Diff) error {
	if err := c.checkUnique(d); err != nil {
		return c.Classify(err)
	}
	if c.small(item, d) {
		return nil
	}
	size, key := 0, 0
	for name, v := range item {
		switch {
		case c.IsKey(name):
			key += len(name) + valueSize(v)
			fallthrough
		case !c.Reserved(name) || c.IsOnce(name) || name == c.Delegated:
			size += len(name) + valueSize(v)
		}
	}
	for _, a := range d.Set {
		if old, ok := item[a.Name]; ok {
			size -= len(a.Name) + valueSize(old)
		}
		size += len(a.Name) + valueSize(a.Value)
	}
	for _, name := range d.Remove {
		if old, ok := item[name]; ok {
			size -= len(name) + valueSize(old)
		}
	}
	if size > maxItem-headroom {
		return c.Classify(&ddb.SizeError{Text: fmt.Sprintf("the item would have about %d bytes; DynamoDB takes %d, of which %d are kept for its lock: move large values elsewhere", size, maxItem, headroom)})
	}
	update := size - key + updateBytes + setBytes*len(d.Set) + removeBytes*len(d.Remove)
	if update > maxItem-ownBytes {
		return c.Classify(&ddb.SizeError{Text: fmt.Sprintf("the update counts as about %d bytes, %d for each attribute that it sets among them; DynamoDB takes %d, of which %d are kept for its lock: change fewer attributes at once, or move large values elsewhere",
			update, setBytes, maxItem, ownBytes)})
	}
	return nil
}

// checkUnique refuses a unique text that would be stored as another one: its claim would be
// of what no item has, and items with different claims would be alike.
func (c *Core) checkUnique(d ddb.Diff) error {
	if len(c.Unique.All) == 0 {
		return nil
	}
	for _, a := range d.Set {
		if err := ddb.KeptText(a.Value); err != nil && c.IsUnique(a.Name) {
			return &stored.ShapeError{Attribute: a.Name, Err: err}
		}
	}
	return nil
}

// small reports whether an update is far from the bounds, whatever counts of it: most
// are.
func (c *Core) small(item ddb.Item, d ddb.Diff) bool {
	most := Size(item) + updateBytes + setBytes*len(d.Set) + removeBytes*len(d.Remove)
	for _, a := range d.Set {
		most += len(a.Name) + valueSize(a.Value)
	}
	return most <= maxItem-headroom
}

// Size estimates the billed size of an item, in bytes, by the rules that AWS
// documents.
func Size(item ddb.Item) (n int) {
	for name, v := range item {
		n += len(name) + valueSize(v)
	}
	return n
}

func valueSize(v types.AttributeValue) (n int) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberL:
		n = 3
		for _, e := range v.Value {
			n += 1 + valueSize(e)
		}
		return n
	case *types.AttributeValueMemberM:
		n = 3
		for name, e := range v.Value {
			n += 1 + len(name) + valueSize(e)
		}
		return n
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			n += len(s)
		}
		return n
	case *types.AttributeValueMemberNS:
		for _, s := range v.Value {
			n += numberSize(s)
		}
		return n
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			n += len(b)
		}
		return n
	}
	return 1
}

// numberSize: about one byte for two significant digits, and one more.
func numberSize(s string) int { return min(len(s)/2+2, 21) }
