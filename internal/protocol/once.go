package protocol

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"slices"
	"strings"
	"time"

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

// Entries are what an item is to remember of an id.
func (id OnceID) Entries(fingerprint OnceID) [][]byte {
	if fingerprint == (OnceID{}) {
		return [][]byte{id[:]}
	}
	return [][]byte{id[:], fingerprint[:]}
}

// Remember is what a write that is based on an item sets, so that the item
// remembers an id, and its fingerprint, if it has one.
func (c *Core) Remember(item ddb.Item, id, fingerprint OnceID, epoch int64) ([]ddb.Attribute, error) {
	known, present := c.StoredEpoch(item), item[c.Once[0]]
	own := &types.AttributeValueMemberBS{Value: id.Entries(fingerprint)}
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

// StoredEpoch is the present epoch of an item; -1 if it remembers nothing.
func (c *Core) StoredEpoch(item ddb.Item) int64 {
	if n, err := ddb.Int(item[c.Once[2]]); err == nil {
		return n
	}
	return -1
}

// TooManyIDs is why an operation is refused rather than another one forgotten.
func (c *Core) TooManyIDs() error {
	return c.Classify(&ddb.SizeError{Text: fmt.Sprintf("the item remembers %d ids of operations already, those with a fingerprint counted twice, as many as it may in one epoch (%v): shorten TableConfig.Remember, or spread the operations over several items", stored.MostOnceIDs, c.Retention)})
}
