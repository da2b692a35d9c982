package stored

import (
	"fmt"
	"math"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// ShapeError says that an attribute has one of the library's names but neither
// type nor shape of what the library writes there: it is somebody else's, and
// must be neither believed nor overwritten.
type ShapeError struct {
	Attribute string
	Err       error
}

func (e *ShapeError) Error() string { return fmt.Sprintf("attribute %q: %v", e.Attribute, e.Err) }

func (e *ShapeError) Unwrap() error { return e.Err }

// MaxNumber bounds the numbers in the lock's attributes: what is greater can be
// no token, time or lease, and would overflow when it is counted on.
const MaxNumber = 1 << 62

// CheckShape refuses an item of which an attribute with one of the library's
// names is not the library's. The conditions of writes that have not read the
// item ask the same (protocol.Write.IfOurs, and the fixed texts there),
// but for what no condition can: whether a number is whole.
func (t *Table) CheckShape(item ddb.Item) error {
	_, err := t.ParseChecked(item)
	return err
}

// ParseChecked is ParseRecord of an item of which it checks the shape.
func (t *Table) ParseChecked(item ddb.Item) (Record, error) {
	l, err := t.ParseRecord(item)
	if err == nil {
		err = t.checkRest(item)
	}
	return l, err
}

// checkRest is CheckShape of what is not the lock's.
func (t *Table) checkRest(item ddb.Item) error {
	a := &t.Attr
	if v, ok := item[a.Writers]; ok && RingOf(v) == nil {
		return &ShapeError{a.Writers, fmt.Errorf("%s, not the ids of the latest writes (bytes, %d for each of at most %d)", describe(v), RingID, RingLen/RingID)}
	}
	if v, ok := item[t.Unread]; ok && (len(RingOf(v)) != RingID) {
		return &ShapeError{t.Unread, fmt.Errorf("%s, not the id of a write (%d bytes)", describe(v), RingID)}
	}
	if v, ok := item[a.Tombstone]; ok && !isTrue(v) {
		return &ShapeError{a.Tombstone, fmt.Errorf("%s, not the mark of a deleted item (BOOL true)", describe(v))}
	}
	if v, ok := item[t.Delegated]; ok && ddb.TypeName(v) != "M" {
		return &ShapeError{t.Delegated, fmt.Errorf("%s, not what delegated commands leave (a map)", describe(v))}
	}
	return t.checkOnce(item)
}

// describe is a value's type, and the length of bytes.
func describe(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("type B, %d bytes", len(v.Value))
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprintf("BOOL %v", v.Value)
	}
	return "type " + ddb.TypeName(v)
}

// isTrue reports whether a value is a mark.
func isTrue(v types.AttributeValue) bool {
	b, ok := v.(*types.AttributeValueMemberBOOL)
	return ok && b.Value
}

// parseNumber reads a number of the lock's attributes.
func parseNumber(v types.AttributeValue) (float64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("type %s, not a number", ddb.TypeName(v))
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f >= MaxNumber { // as a float the numbers right above it are equal to it
		return 0, fmt.Errorf("it is not a number from 0 to %d", int64(MaxNumber))
	}
	return f, nil
}
