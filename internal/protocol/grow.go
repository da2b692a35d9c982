package protocol

import (
	"bytes"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// ApplyOn is Apply of a difference that was made from an item. The ids of operations are
// added to those that are there: an id that has come since it was read, which whoever holds
// the item does not keep out, stays. Where ids that were read leave the set, the write
// demands that no other has come.
func (w *Write) ApplyOn(item ddb.Item, d ddb.Diff) {
	set := w.Core.Once[0]
	at := slices.IndexFunc(d.Set, func(a ddb.Attribute) bool { return a.Name == set })
	if at < 0 {
		w.Apply(d)
		return
	}
	added, grows := addedTo(EntriesOf(item[set]), EntriesOf(d.Set[at].Value))
	if !grows {
		w.Apply(d)
		w.IfSeen(item, w.Core.Once[:]...)
		return
	}
	w.Apply(d.Without(set))
	w.AddTo(set, w.Value(&types.AttributeValueMemberBS{Value: added}))
}

// addedTo is what a set has more than before, and whether it has all that was there.
func addedTo(before, after [][]byte) (added [][]byte, grows bool) {
	has := func(all [][]byte, one []byte) bool {
		return slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(one, other) })
	}
	for _, one := range after {
		if !has(before, one) {
			added = append(added, one)
		}
	}
	return added, len(added) > 0 && !slices.ContainsFunc(before, func(one []byte) bool { return !has(after, one) })
}
