package protocol

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/dynahold/dynahold/internal/ddb"
)

// A ring is the attribute "writers": the random ids of the latest writes of an
// item, newest first, at most eight of eight bytes each. It proves that a
// write whose answer was lost has been applied, and equality of rings proves
// that an item is the one that was read, not one made anew with the same
// version.
//
// A writer that has not read the item (an event write) cannot push its id, so
// it starts a new ring of its own id, and what came before is out of sight.
const (
	ringID  = 8
	ringLen = 8 * ringID
)

// WriteID is the random id of one write.
type WriteID [ringID]byte

// NewWriteID makes an id.
func NewWriteID() (id WriteID) {
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	return id
}

// Push returns the ring after the write id on an item with ring old.
func (id WriteID) Push(old []byte) types.AttributeValue {
	ring := append(make([]byte, 0, ringLen), id[:]...)
	ring = append(ring, old[:min(len(old), ringLen-ringID)]...)
	return ddb.Bytes(ring)
}

// CheckCount refuses a version that cannot be counted on: it would begin again below
// zero, or not fit the type any more.
func (c *Core) CheckCount(version int64) error {
	if version >= c.MostVersion {
		return &ShapeError{c.Version, fmt.Errorf("the version %d cannot be counted on", version)}
	}
	return nil
}

// CheckCounted is CheckCount of the version of an item.
func (c *Core) CheckCounted(item ddb.Item) error {
	v, ok := item[c.Version]
	if !ok || c.Version == "" {
		return nil
	}
	version, err := ddb.Int(v)
	if err != nil {
		return &ShapeError{c.Version, err}
	}
	return c.CheckCount(version)
}

// Ring returns the ring of an item; nil where it has none, or something that is
// no ring and proves nothing.
func (c *Core) Ring(item ddb.Item) []byte { return ring(item[c.Attr.Writers]) }

// Writes is how many latest writes an item knows the ids of.
func (c *Core) Writes(item ddb.Item) int { return len(c.Ring(item)) / ringID }

func ring(v types.AttributeValue) []byte {
	b, ok := v.(*types.AttributeValueMemberB)
	if !ok || len(b.Value) == 0 || len(b.Value) > ringLen || len(b.Value)%ringID != 0 {
		return nil
	}
	return b.Value
}

// RingVerdict says what a ring tells about the write id that was based on an
// item with ring base: Committed, Lost (not applied: base is still in sight and
// id is not among what came after it), or Undecided.
func RingVerdict(id WriteID, base, now []byte) Verdict {
	for i := 0; i+ringID <= len(now); i += ringID {
		at := now[i : i+ringID]
		if bytes.Equal(at, id[:]) {
			return Committed
		}
		if len(base) > 0 && bytes.Equal(at, base[:ringID]) {
			return Lost // everything since base is in sight, and id is not in it
		}
	}
	return Undecided
}
