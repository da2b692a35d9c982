package protocol

import (
	"bytes"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/stored"
)

// Sight is how the process has seen an item last: its version, and the ring of its
// writers. A caller that hands in an item at that version has most likely read it then,
// so its write can be bound to the ring too, and judged as one that has read.
type Sight struct {
	Version int64
	Ring    []byte
}

// sightsKept is of how many items of a table the process remembers that.
const sightsKept = 1_000

// sights are remembered as soon as somebody has asked for one.
type sights struct {
	asked  atomic.Bool
	memory *recent.Memory[Sight]
}

// Sighted is how the process has seen an item last; the zero value: it has not.
func (c *Core) Sighted(key ddb.Item) Sight {
	c.sights.asked.Store(true)
	return c.sights.memory.Get(c.KeyText(key))
}

// See remembers at which version, and with which ring, an item was left or found.
func (c *Core) See(key ddb.Item, version int64, writers types.AttributeValue) {
	s := Sight{version, bytes.Clone(stored.RingOf(writers))} // not the whole image
	c.sights.memory.Change(c.KeyText(key), func(Sight) (Sight, bool) { return s, len(s.Ring) > 0 })
}

// sighted remembers an image, unless that could not be an item's as the library left it.
func (c *Core) sighted(image ddb.Item) {
	if !c.sights.asked.Load() {
		return
	}
	if version, err := ddb.Int(image[c.Version]); err == nil && c.CheckShape(image) == nil {
		c.See(image, version, image[c.Attr.Writers])
	}
}
