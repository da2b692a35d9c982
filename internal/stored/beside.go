package stored

import (
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// RowPrefix begins the partition keys, as far as they are texts or bytes, of the rows that
// the library keeps beside the items of a table, and of nothing else. Such a row is marked
// as a tombstone: all who read the table, also programs that know nothing of such rows,
// take it for no item.
const RowPrefix = "dynahold:"

// IsRowKey reports whether a partition key is one of those of such rows.
func IsRowKey(v types.AttributeValue) bool { return strings.HasPrefix(ddb.ScalarText(v), RowPrefix) }

// BesideKey is the key of such a row, which tells what kind it is and of what. Its partition
// is its own: it takes nothing of the item's share of the table. Where partition keys are
// numbers, it is one of 37 digits below zero.
func (t *Table) BesideKey(item ddb.Item, kind string, of ...[]byte) ddb.Item {
	h := sha256.New()
	h.Write([]byte(kind))
	for _, part := range of {
		h.Write([]byte{byte(len(part))})
		h.Write(part)
	}
	sum := h.Sum(nil)[:18]
	key := ddb.Item{}
	switch item[t.Partition].(type) {
	case *types.AttributeValueMemberN:
		digits := new(big.Int).Mod(new(big.Int).SetBytes(sum), tenTo36)
		key[t.Partition] = ddb.Number(new(big.Int).Neg(digits.Add(digits, tenTo36)).String())
	case *types.AttributeValueMemberB:
		key[t.Partition] = ddb.Bytes(append([]byte(RowPrefix+kind+":"), sum...))
	default:
		key[t.Partition] = ddb.Text(RowPrefix + kind + ":" + base64.RawURLEncoding.EncodeToString(sum))
	}
	if t.Sort == "" {
		return key
	}
	switch item[t.Sort].(type) {
	case *types.AttributeValueMemberN:
		key[t.Sort] = ddb.Integer(0)
	case *types.AttributeValueMemberB:
		key[t.Sort] = ddb.Bytes([]byte(kind))
	default:
		key[t.Sort] = ddb.Text(kind)
	}
	return key
}

// OnceRow is the key of the row beside an item with a mark that may have an id of an
// operation, or its fingerprint.
func (t *Table) OnceRow(item ddb.Item, mark Mark, entry []byte) ddb.Item {
	return t.BesideKey(item, "once", []byte(mark.Rows), entry[:OnceIDBytes/2])
}

var tenTo36 = new(big.Int).Exp(big.NewInt(10), big.NewInt(36), nil)
