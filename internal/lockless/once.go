package lockless

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/beside"
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
	d, err := beside.Remember(c, image, id, protocol.OnceID{}, c.Epoch(c.Clock()), nil)
	if err != nil {
		return nil, err
	}
	w := c.NewWrite()
	w.Apply(d)
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
// says at which mark it expects the item, so that a copy of it that comes late
// finds the id, or the item at another mark: it can be sent any number of times.
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
	// Mark is that of an item with rows beside it, as it was seen.
	Mark stored.Mark
	// Base is the item that was full, and Move what was moved from it, or one of another
	// Remember: the write demands that it is as it was then. nil: it was neither.
	Base *ddb.Item
	Move *beside.Move
	// Room is for how many entries the item has room; 0: as usual. It is more where what is
	// there is no operation's.
	Room int
}

// Add adds to a write what remembers the id, under the condition that the item
// does not remember it yet.
func (o UnreadOnce) Add(w *protocol.Write) {
	if o.Base != nil {
		o.addBased(w)
		return
	}
	c := w.Core
	set, past, epoch := w.Name(c.Once[0]), w.Name(c.Once[1]), w.Name(c.Once[2])
	id, own, at := w.Value(ddb.Bytes(o.ID[:])), w.Value(&types.AttributeValueMemberBS{Value: o.ID.Entries(o.Fingerprint)}), w.Value(o.expects().Value())
	bs := w.Value(ddb.Text("BS"))
	known := "attribute_type(" + set + ", " + bs + ") AND NOT contains(" + set + ", " + id + ")" +
		" AND (attribute_not_exists(" + past + ") OR attribute_type(" + past + ", " + bs + ") AND NOT contains(" + past + ", " + id + "))"
	if o.Rotates {
		if o.Mark.Rows == "" {
			w.If(epoch + " < " + at + " AND " + known)
		} else {
			w.If(epoch + " = " + at + " AND " + known)
			at = w.Value(o.Mark.At(o.Epoch).Value())
		}
		w.SetTo(c.Once[1], set)
		w.SetTo(c.Once[0], own)
		w.SetTo(c.Once[2], at)
		return
	}
	room := "size(" + set + ") < " + w.Value(ddb.Number(strconv.Itoa(o.most(c))))
	if o.Mark.Rows != "" {
		w.If(epoch + " = " + at + " AND " + room + " AND " + known)
		w.AddTo(c.Once[0], own)
		return
	}
	w.If("(attribute_not_exists(" + set + ") AND attribute_not_exists(" + past + ") AND attribute_not_exists(" + epoch + ") OR " + epoch + " = " + at + " AND " + room + " AND " + known + ")")
	w.AddTo(c.Once[0], own)
	w.SetTo(c.Once[2], at)
}

// addBased is Add where the item was full, or of another Remember.
func (o UnreadOnce) addBased(w *protocol.Write) {
	d, err := beside.Remember(w.Core, *o.Base, o.ID, o.Fingerprint, o.Epoch, o.Move)
	if err != nil { // there is room, after what has gone
		panic(err)
	}
	w.Apply(d)
	w.IfSeen(*o.Base, w.Core.Once[:]...)
}

// expects is the mark that the item is expected at; of an item that is to begin an epoch,
// and has no rows beside it, any that is before this one.
func (o UnreadOnce) expects() stored.Mark {
	if o.Mark.Rows != "" {
		return o.Mark
	}
	return stored.Mark{Epoch: o.Epoch}
}

// most is how many entries an item has at the least that has no room for those of o.
func (o UnreadOnce) most(c *protocol.Core) int {
	if o.Room > 0 {
		return o.Room
	}
	own := len(o.ID.Entries(o.Fingerprint))
	return 2*c.OnceRoom*own + 1 - own
}

// NewUnreadOnce is the first try of a call.
func NewUnreadOnce(id, fingerprint protocol.OnceID, epoch int64) UnreadOnce {
	return UnreadOnce{ID: id, Fingerprint: fingerprint, Epoch: epoch, First: epoch}
}

// Forgets reports whether the item may have forgotten the id since the first try.
func (o UnreadOnce) Forgets() bool { return o.Epoch > o.First+1 }

// After is the next try after an image has refused one, at an epoch, and whether it
// is another one: if not, the ids are not why it was refused. An item in a later
// epoch is taken as it is: this clock is slow. move is what was moved from the image; nil:
// nothing was.
func (o UnreadOnce) After(c *protocol.Core, image ddb.Item, epoch int64, move *beside.Move) (next UnreadOnce, other bool, err error) {
	next = UnreadOnce{ID: o.ID, Fingerprint: o.Fingerprint, First: o.First, Epoch: epoch}
	mark := c.MarkAt(image, epoch)
	if mark.Rows != "" {
		next.Mark = mark
	}
	switch {
	case mark.Epoch < 0: // it remembers nothing yet
	case move.Fits(c, image):
		next.Epoch, next.Base, next.Move = move.Epoch(), &image, move
	case mark != c.MarkOf(image): // it was counted with another Remember
		next.Epoch, next.Base = mark.Epoch, &image
		if _, err := beside.Remember(c, image, o.ID, o.Fingerprint, epoch, nil); err != nil {
			return next, false, err
		}
	case mark.Epoch < epoch:
		next.Rotates = true
	default:
		next.Epoch = mark.Epoch
		if has := len(protocol.EntriesOf(image[c.Once[0]])); has >= next.most(c) {
			next.Room = has + 1
		}
		if next.Room > stored.MostOnceIDs+1-len(o.ID.Entries(o.Fingerprint)) {
			return next, false, beside.TooManyIDs(c)
		}
	}
	return next, !next.same(c, o), nil
}

// same reports whether two tries ask the same of an item.
func (o UnreadOnce) same(c *protocol.Core, other UnreadOnce) bool {
	if o.Base == nil || other.Base == nil || o.Move != other.Move {
		return o == other
	}
	return ddb.EqualIn(*o.Base, *other.Base, c.Once[:]...)
}
