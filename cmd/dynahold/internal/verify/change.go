package verify

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Change is one record of a stream.
type Change struct {
	Table    string                          // empty if the record does not tell
	Key      string                          // history.KeyHash
	Name     string                          // of the item, as it is shown
	Keys     map[string]types.AttributeValue // all attributes of its key
	Sequence string                          // orders the changes of an item
	Time     time.Time
	ByTTL    bool // DynamoDB itself has removed the item

	Before, After map[string]types.AttributeValue // nil: there was none
}

// order puts the changes of each item one behind the other, as they were made. A batch
// that was delivered twice counts once.
func order(changes []Change) []Change {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Key, b.Key), compareSequence(a.Sequence, b.Sequence))
	})
	return slices.CompactFunc(changes, func(a, b Change) bool {
		return a.Table == b.Table && a.Key == b.Key && a.Sequence != "" && a.Sequence == b.Sequence
	})
}

// compareSequence compares numbers of up to 40 digits.
func compareSequence(a, b string) int {
	x, isNumber := new(big.Int).SetString(a, 10)
	y, areBoth := new(big.Int).SetString(b, 10)
	if !isNumber || !areBoth {
		return strings.Compare(a, b)
	}
	return x.Cmp(y)
}
