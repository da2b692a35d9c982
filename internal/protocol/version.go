package protocol

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// WriteID is the random id of one write.
type WriteID [stored.RingID]byte

// NewWriteID makes an id.
func NewWriteID() (id WriteID) {
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	if id.IsMark() {
		id[stored.RingID-1] = 1
	}
	return id
}

// NewMark makes an id that is no write's, but pushed on a ring to move it: it ends with two
// zeros.
func NewMark() (id WriteID) {
	_, _ = rand.Read(id[:stored.RingID-2])
	return id
}

// IsMark reports whether an id is nobody's: it is the first to leave a full ring.
func (id WriteID) IsMark() bool { return id[stored.RingID-2] == 0 && id[stored.RingID-1] == 0 }

// Push returns the ring after the write id on an item with ring old.
func (id WriteID) Push(old []byte) types.AttributeValue {
	return id.push(old, func(WriteID) bool { return false })
}

// push is Push; the first to go from a full ring is an id that nobody will look for.
func (id WriteID) push(old []byte, done func(WriteID) bool) types.AttributeValue {
	ring := append(make([]byte, 0, stored.RingLen+stored.RingID), id[:]...)
	ring = append(ring, old[:min(len(old), stored.RingLen)]...)
	if len(ring) <= stored.RingLen {
		return ddb.Bytes(ring)
	}
	// The newest that was there stays: others look for it first.
	for i := stored.RingLen; i > stored.RingID; i -= stored.RingID {
		if one := WriteID(ring[i : i+stored.RingID]); one.IsMark() || done(one) {
			return ddb.Bytes(slices.Delete(ring, i, i+stored.RingID))
		}
	}
	return ddb.Bytes(ring[:stored.RingLen])
}

// Push is what a write that is based on an image leaves as ring. From a full one the
// oldest id of a write goes of which this process knows the verdict, so that those of
// others stay in sight, however often it writes.
func (c *Core) Push(id WriteID, image ddb.Item) types.AttributeValue {
	return id.push(c.Ring(image), c.judged)
}

// Judged notes that a write has its verdict: nobody will look for its id.
func (c *Core) Judged(id WriteID) {
	c.done.Change(string(id[:]), func(bool) (bool, bool) { return true, true })
}

func (c *Core) judged(id WriteID) bool { return c.done.Get(string(id[:])) }

// judgedKept is how many of its writes a process knows as judged.
const judgedKept = 4_096

// Wrote reports whether an item shows that a write was applied.
func (c *Core) Wrote(item ddb.Item, id WriteID) bool {
	return bytes.Equal(c.LastUnread(item), id[:]) || RingVerdict(id, nil, c.Ring(item)) == Committed
}

// CheckCount refuses a version that cannot be counted on: it would begin again below
// zero, or not fit the type any more.
func (c *Core) CheckCount(version int64) error {
	if version >= c.MostVersion {
		return &stored.ShapeError{Attribute: c.Version, Err: fmt.Errorf("the version %d cannot be counted on", version)}
	}
	return nil
}

// RingVerdict says what a ring tells about the write id that was based on an item with
// ring base: Committed, Lost (not applied: something of base is still in sight, and id is
// not before it), or Undecided. Ids leave a ring at its end, or when their writers know
// their verdicts, so those that stay are in order.
func RingVerdict(id WriteID, base, now []byte) Verdict {
	for i := 0; i+stored.RingID <= len(now); i += stored.RingID {
		at := now[i : i+stored.RingID]
		if bytes.Equal(at, id[:]) {
			return Committed
		}
		if has(base, at) {
			return Lost
		}
	}
	return Undecided
}

// has reports whether an id is in a ring.
func has(ring, id []byte) bool {
	for i := 0; i+stored.RingID <= len(ring); i += stored.RingID {
		if bytes.Equal(ring[i:i+stored.RingID], id) {
			return true
		}
	}
	return false
}
