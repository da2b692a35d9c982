package protocol

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// OnceID is what an item remembers of an operation's id: the beginning of its
// SHA-256, so that ids of any length cost the same.
type OnceID [stored.OnceIDBytes]byte

// NewOnceID makes it, of an operation on one item. A text that would make it that of a
// transaction has another hash.
func NewOnceID(id string) OnceID {
	if strings.HasPrefix(id, ofTransaction) {
		sum := sha512.Sum512_256([]byte(id))
		return OnceID(sum[:stored.OnceIDBytes])
	}
	sum := sha256.Sum256([]byte(id))
	return OnceID(sum[:stored.OnceIDBytes])
}

// NewTransactionID makes it, of a whole transaction.
func NewTransactionID(id string) OnceID {
	sum := sha256.Sum256([]byte(ofTransaction + id))
	return OnceID(sum[:stored.OnceIDBytes])
}

// ofTransaction begins what is hashed for a transaction, and nothing that is hashed like
// that for an item.
const ofTransaction = "transaction\x00"

// Fingerprint is what an item remembers beside an id that came with the fingerprint of its
// request: the beginning of the id, and that of the SHA-256 of both. So whoever knows the
// id sees whether it came with another one, and it is an id to programs that know of none.
func (id OnceID) Fingerprint(of []byte) OnceID {
	sum := sha256.Sum256(append(id[:], of...))
	copy(id[stored.OnceIDBytes/2:], sum[:])
	return id
}

// begins reports whether what an item remembers is an id's fingerprint, or the id.
func (id OnceID) begins(entry []byte) bool { return bytes.HasPrefix(entry, id[:stored.OnceIDBytes/2]) }

// Memory is what an item knows of an operation.
type Memory int

// What it may know.
const (
	NotMade Memory = iota
	Made
	MadeOtherwise // under the same id, with another fingerprint
)

// Epoch is the number of the epoch at a time.
func (c *Core) Epoch(now time.Time) int64 { return now.UnixMilli() / c.Retention.Milliseconds() }

// Remembers reports whether an item remembers an id: the operation was made.
func (c *Core) Remembers(item ddb.Item, id OnceID) bool {
	return c.Recall(item, id, OnceID{}) != NotMade
}

// Recall is what an item remembers of an id that comes with a fingerprint; without one
// that is the zero value. Where either has none the ids alone are compared.
func (c *Core) Recall(item ddb.Item, id, fingerprint OnceID) Memory {
	known, others, bare := false, false, fingerprint == OnceID{}
	for _, name := range c.Once[:2] {
		set, ok := item[name].(*types.AttributeValueMemberBS)
		if !ok {
			continue
		}
		for _, entry := range set.Value {
			switch {
			case bytes.Equal(entry, id[:]):
				known = true
			case !bare && bytes.Equal(entry, fingerprint[:]):
				return Made
			case id.begins(entry):
				others = true
			}
		}
	}
	switch {
	case !known:
		return NotMade
	case others && !bare:
		return MadeOtherwise
	}
	return Made
}

// entries are what an item is to remember of an id.
func (id OnceID) entries(fingerprint OnceID) [][]byte {
	if fingerprint == (OnceID{}) {
		return [][]byte{id[:]}
	}
	return [][]byte{id[:], fingerprint[:]}
}

// Remember is what a write that is based on an item sets, so that the item
// remembers an id, and its fingerprint, if it has one.
func (c *Core) Remember(item ddb.Item, id, fingerprint OnceID, epoch int64) ([]ddb.Attribute, error) {
	known, present := c.storedEpoch(item), item[c.Once[0]]
	own := &types.AttributeValueMemberBS{Value: id.entries(fingerprint)}
	if set, ok := present.(*types.AttributeValueMemberBS); ok && known >= epoch {
		if len(set.Value)+len(own.Value) > stored.MostOnceIDs {
			return nil, c.TooManyIDs()
		}
		own.Value = append(slices.Clone(set.Value), own.Value...)
		return []ddb.Attribute{{Name: c.Once[0], Value: own}}, nil
	}
	sets := []ddb.Attribute{{Name: c.Once[0], Value: own}, {Name: c.Once[2], Value: ddb.Integer(epoch)}}
	if present != nil {
		sets = append(sets, ddb.Attribute{Name: c.Once[1], Value: present})
	}
	return sets, nil
}

// storedEpoch is the present epoch of an item; -1 if it remembers nothing.
func (c *Core) storedEpoch(item ddb.Item) int64 {
	if n, err := ddb.Int(item[c.Once[2]]); err == nil {
		return n
	}
	return -1
}

// TooManyIDs is why an operation is refused rather than another one forgotten.
func (c *Core) TooManyIDs() error {
	return c.Classify(&ddb.SizeError{Text: fmt.Sprintf("the item remembers %d ids of operations already, those with a fingerprint counted twice, as many as it may in one epoch (%v): shorten TableConfig.Remember, or spread the operations over several items", stored.MostOnceIDs, c.Retention)})
}

// NewExclusion is the id that a write demands not to be there, and that its call leaves
// where no copy of it may be applied: that of the write, behind zeros.
func NewExclusion(id WriteID) (excluded OnceID) {
	copy(excluded[stored.OnceIDBytes-stored.RingID:], id[:])
	return excluded
}

// Exclude leaves an id on an item whose image is known, whoever holds it.
func (c *Core) Exclude(key, image ddb.Item, id OnceID) (*dynamodb.UpdateItemInput, error) {
	sets, err := c.Remember(image, id, OnceID{}, c.Epoch(c.Clock()))
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
func (w *Write) IfNotExcluded(id OnceID) {
	v := w.Value(ddb.Bytes(id[:]))
	for _, name := range w.core.Once[:2] {
		w.If("NOT contains(" + w.Name(name) + ", " + v + ")")
	}
}

// UnreadOnce makes a write that has not read the item remember an id. The write
// says at which epoch it expects the item, so that a copy of it that comes late
// finds the id, or the item in another epoch: it can be sent any number of times.
type UnreadOnce struct {
	ID          OnceID
	Fingerprint OnceID // zero: none
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
func (o UnreadOnce) Add(w *Write) {
	set, past, epoch := w.Name(w.core.Once[0]), w.Name(w.core.Once[1]), w.Name(w.core.Once[2])
	id, own, at := w.Value(ddb.Bytes(o.ID[:])), w.Value(&types.AttributeValueMemberBS{Value: o.ID.entries(o.Fingerprint)}), w.Value(ddb.Integer(o.Epoch))
	bs := w.Value(ddb.Text("BS"))
	known := "attribute_type(" + set + ", " + bs + ") AND NOT contains(" + set + ", " + id + ")" +
		" AND (attribute_not_exists(" + past + ") OR attribute_type(" + past + ", " + bs + ") AND NOT contains(" + past + ", " + id + "))"
	if o.Rotates {
		w.If(epoch + " < " + at + " AND " + known)
		w.SetTo(w.core.Once[1], set)
		w.SetTo(w.core.Once[0], own)
		w.SetTo(w.core.Once[2], at)
		return
	}
	room := "size(" + set + ") < " + w.Value(ddb.Number(strconv.Itoa(o.most())))
	w.If("(attribute_not_exists(" + set + ") AND attribute_not_exists(" + past + ") AND attribute_not_exists(" + epoch + ") OR " + epoch + " = " + at + " AND " + room + " AND " + known + ")")
	w.AddTo(w.core.Once[0], own)
	w.SetTo(w.core.Once[2], at)
}

// most is how many entries an item has at the least that has no room for those of o.
func (o UnreadOnce) most() int { return stored.MostOnceIDs + 1 - len(o.ID.entries(o.Fingerprint)) }

// NewUnreadOnce is the first try of a call.
func NewUnreadOnce(id, fingerprint OnceID, epoch int64) UnreadOnce {
	return UnreadOnce{ID: id, Fingerprint: fingerprint, Epoch: epoch, First: epoch}
}

// Forgets reports whether the item may have forgotten the id since the first try.
func (o UnreadOnce) Forgets() bool { return o.Epoch > o.First+1 }

// After is the next try after an image has refused one, at an epoch, and whether it
// is another one: if not, the ids are not why it was refused. An item in a later
// epoch is taken as it is: this clock is slow.
func (o UnreadOnce) After(c *Core, image ddb.Item, epoch int64) (next UnreadOnce, other bool, err error) {
	next = UnreadOnce{ID: o.ID, Fingerprint: o.Fingerprint, First: o.First, Epoch: epoch}
	switch has := c.storedEpoch(image); {
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
