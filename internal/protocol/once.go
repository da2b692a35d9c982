package protocol

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
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

// Recall is what an item remembers of an id that comes with a fingerprint, which is the
// zero value where it comes without; beside are the entries that a row beside the item
// has. Where either has none the ids alone are compared.
func (c *Core) Recall(item ddb.Item, id, fingerprint OnceID, beside ...[]byte) Memory {
	known, others, bare := false, false, fingerprint == OnceID{}
	for _, entries := range [][][]byte{EntriesOf(item[c.Once[0]]), EntriesOf(item[c.Once[1]]), beside} {
		for _, entry := range entries {
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

// EntriesOf are the entries of a set.
func EntriesOf(v types.AttributeValue) [][]byte {
	if set, ok := v.(*types.AttributeValueMemberBS); ok {
		return set.Value
	}
	return nil
}

// Entries are what an item is to remember of an id.
func (id OnceID) Entries(fingerprint OnceID) [][]byte {
	if fingerprint == (OnceID{}) {
		return [][]byte{id[:]}
	}
	return [][]byte{id[:], fingerprint[:]}
}
