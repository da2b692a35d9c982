package lockless

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Remembers reports whether an item remembers an id: the operation was made.
func Remembers(c *protocol.Core, item ddb.Item, id protocol.OnceID) bool {
	return c.Recall(item, id, protocol.OnceID{}) != protocol.NotMade
}

// NewExclusion is the id that a write demands not to be there, and that its call leaves
// where no copy of it may be applied: that of the write, behind zeros.
func NewExclusion(id protocol.WriteID) (excluded protocol.OnceID) {
	copy(excluded[stored.OnceIDBytes-stored.RingID:], id[:])
	return excluded
}

// Exclude leaves an id on an item whose image is known, whoever holds it.
func Exclude(c *protocol.Core, key, image ddb.Item, id protocol.OnceID) (*dynamodb.UpdateItemInput, error) {
	sets, err := c.Remember(image, id, protocol.OnceID{}, c.Epoch(c.Clock()))
	if err != nil {
		return nil, err
	}
	w := c.NewWrite()
	w.Apply(ddb.Diff{Set: sets})
	w.IfExists(c.Partition)
	w.IfSeen(image, c.Once[:]...)
	return w.Update(key)
}

// IfNotExcluded demands that an item does not have such an id.
func IfNotExcluded(w *protocol.Write, id protocol.OnceID) {
	v := w.Value(ddb.Bytes(id[:]))
	for _, name := range w.Core.Once[:2] {
		w.If("NOT contains(" + w.Name(name) + ", " + v + ")")
	}
}

// UnreadOnce makes a write that has not read the item remember an id. The write
// says at which epoch it expects the item, so that a copy of it that comes late
// finds the id, or the item in another epoch: it can be sent any number of times.
type UnreadOnce struct {
	ID          protocol.OnceID
	Fingerprint protocol.OnceID // zero: none
	Epoch       int64
	// First is the epoch of the call's first try. An item that is beyond the one
	// after it may have forgotten what an attempt without an answer has done.
	First int64
	// Rotates says that the item was seen in an earlier epoch: the write moves it
	// to this one.
	Rotates bool
}

// Add adds to a write what remembers the id, under the condition that the item
// does not remember it yet.
func (o UnreadOnce) Add(w *protocol.Write) {
	set, past, epoch := w.Name(w.Core.Once[0]), w.Name(w.Core.Once[1]), w.Name(w.Core.Once[2])
	id, own, at := w.Value(ddb.Bytes(o.ID[:])), w.Value(&types.AttributeValueMemberBS{Value: o.ID.Entries(o.Fingerprint)}), w.Value(ddb.Integer(o.Epoch))
	bs := w.Value(ddb.Text("BS"))
	known := "attribute_type(" + set + ", " + bs + ") AND NOT contains(" + set + ", " + id + ")" +
		" AND (attribute_not_exists(" + past + ") OR attribute_type(" + past + ", " + bs + ") AND NOT contains(" + past + ", " + id + "))"
	if o.Rotates {
		w.If(epoch + " < " + at + " AND " + known)
		w.SetTo(w.Core.Once[1], set)
		w.SetTo(w.Core.Once[0], own)
		w.SetTo(w.Core.Once[2], at)
		return
	}
	room := "size(" + set + ") < " + w.Value(ddb.Number(strconv.Itoa(o.most())))
	w.If("(attribute_not_exists(" + set + ") AND attribute_not_exists(" + past + ") AND attribute_not_exists(" + epoch + ") OR " + epoch + " = " + at + " AND " + room + " AND " + known + ")")
	w.AddTo(w.Core.Once[0], own)
	w.SetTo(w.Core.Once[2], at)
}

// most is how many entries an item has at the least that has no room for those of o.
func (o UnreadOnce) most() int { return stored.MostOnceIDs + 1 - len(o.ID.Entries(o.Fingerprint)) }

// NewUnreadOnce is the first try of a call.
func NewUnreadOnce(id, fingerprint protocol.OnceID, epoch int64) UnreadOnce {
	return UnreadOnce{ID: id, Fingerprint: fingerprint, Epoch: epoch, First: epoch}
}

// Forgets reports whether the item may have forgotten the id since the first try.
func (o UnreadOnce) Forgets() bool { return o.Epoch > o.First+1 }

// After is the next try after an image has refused one, at an epoch, and whether it
// is another one: if not, the ids are not why it was refused. An item in a later
// epoch is taken as it is: this clock is slow.
func (o UnreadOnce) After(c *protocol.Core, image ddb.Item, epoch int64) (next UnreadOnce, other bool, err error) {
	next = UnreadOnce{ID: o.ID, Fingerprint: o.Fingerprint, First: o.First, Epoch: epoch}
	switch has := c.StoredEpoch(image); {
	case has < 0: // it remembers nothing yet
	case has < epoch:
		next.Rotates = true
	default:
		next.Epoch = has
		if set, ok := image[c.Once[0]].(*types.AttributeValueMemberBS); ok && len(set.Value) >= o.most() {
			return next, false, c.TooManyIDs()
		}
	}
	return next, next != o, nil
}
