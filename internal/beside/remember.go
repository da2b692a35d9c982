package beside

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Remember is what a write that is based on an item does, so that the item remembers an
// id, and its fingerprint, if it has one. move is what was moved to rows beside the item,
// as it is there; nil: nothing was.
func Remember(c *protocol.Core, item ddb.Item, id, fingerprint protocol.OnceID, epoch int64, move *Move) (d ddb.Diff, err error) {
	mark, present, past := remembered(c, item, epoch)
	next, begins := mark.At(epoch), mark.Epoch < epoch
	moved := move.Fits(c, item)
	if moved {
		next, begins = move.to, move.begins
		present, past = move.rest(present), move.rest(past)
	}
	own := id.Entries(fingerprint)
	switch {
	case begins:
		past = present
	case len(present)+len(own) > stored.MostOnceIDs:
		return d, TooManyIDs(c)
	default:
		own = append(slices.Clone(present), own...)
	}
	d.Set = []ddb.Attribute{{Name: c.Once[0], Value: &types.AttributeValueMemberBS{Value: own}}}
	written := next != c.MarkOf(item)
	if written {
		d.Set = append(d.Set, ddb.Attribute{Name: c.Once[2], Value: next.Value()})
	}
	switch {
	case !written:
	case len(past) > 0:
		d.Set = append(d.Set, ddb.Attribute{Name: c.Once[1], Value: &types.AttributeValueMemberBS{Value: past}})
	case item[c.Once[1]] != nil:
		d.Remove = []string{c.Once[1]}
	}
	return d, nil
}

// remembered are the mark of an item and its ids of the epoch and of the one before, to a
// writer in an epoch. All that came with another Remember count as of the present one.
func remembered(c *protocol.Core, item ddb.Item, epoch int64) (mark stored.Mark, present, past [][]byte) {
	mark, present, past = c.MarkAt(item, epoch), protocol.EntriesOf(item[c.Once[0]]), protocol.EntriesOf(item[c.Once[1]])
	if mark != c.MarkOf(item) {
		present, past = slices.Concat(present, past), nil
	}
	return mark, present, past
}

// TooManyIDs is why an operation is refused rather than another one forgotten: of an item
// that programs which know of no rows beside it have filled.
func TooManyIDs(c *protocol.Core) error {
	return c.Classify(&ddb.SizeError{Text: fmt.Sprintf("the item has %d entries of ids of operations already, as many as it may in one epoch (%v): shorten TableConfig.Remember, or spread the operations over several items", stored.MostOnceIDs, c.Retention)})
}
