package protocol

import (
	"context"
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

// maxNumber bounds the numbers in the lock's attributes: what is greater can be
// no token, time or lease, and would overflow when it is counted on.
const maxNumber = 1 << 62

// CheckShape refuses an item of which an attribute with one of the library's
// names is not the library's. The conditions of writes that have not read the
// item ask the same (IfOurs, and the fixed texts in lock.go and queue.go),
// but for what no condition can: whether a number is whole.
func (c *Core) CheckShape(item ddb.Item) error {
	_, err := c.ParseChecked(item)
	return err
}

// ParseChecked is ParseRecord of an item of which it checks the shape.
func (c *Core) ParseChecked(item ddb.Item) (Record, error) {
	l, err := c.ParseRecord(item)
	if err == nil {
		err = c.checkRest(item)
	}
	return l, err
}

// checkRest is CheckShape of what is not the lock's.
func (c *Core) checkRest(item ddb.Item) error {
	a := &c.Attr
	if v, ok := item[a.Writers]; ok && ring(v) == nil {
		return &ShapeError{a.Writers, fmt.Errorf("%s, not the ids of the latest writes (bytes, %d for each of at most %d)", describe(v), ringID, ringLen/ringID)}
	}
	if v, ok := item[c.unread]; ok && (len(ring(v)) != ringID) {
		return &ShapeError{c.unread, fmt.Errorf("%s, not the id of a write (%d bytes)", describe(v), ringID)}
	}
	if v, ok := item[a.Tombstone]; ok && !isTrue(v) {
		return &ShapeError{a.Tombstone, fmt.Errorf("%s, not the mark of a deleted item (BOOL true)", describe(v))}
	}
	return c.checkOnce(item)
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

// Get reads an item with a consistent read, and refuses one with foreign
// attributes under the library's names, or of another type than the table's.
func (c *Core) Get(ctx context.Context, key ddb.Item) (ddb.Item, error) {
	return c.GetFor(ctx, key, ddb.Options{})
}

// GetFor is Get with options.
func (c *Core) GetFor(ctx context.Context, key ddb.Item, opt ddb.Options) (ddb.Item, error) {
	res := c.Read(ctx, key, opt)
	if res.Err != nil {
		return nil, fmt.Errorf("item %v: %w", c.KeyOf(key), res.Err) // which names the table
	}
	if err := c.CheckType(res.Item); err != nil {
		return nil, err
	}
	if err := c.CheckShape(res.Item); err != nil {
		return nil, c.Classify(fmt.Errorf("%s: %w", c.ItemName(c.KeyOf(key)), err))
	}
	return res.Item, nil
}

// IfOurs demands of what stands under the library's names that it is the
// library's, for a write that has not read the item: it would overwrite what is
// somebody else's, or leave it for others to stumble over; and that the item is of
// the table's type. IfUnlocked and what is asked of the marks come in addition.
func (w *Write) IfOurs() {
	w.IfType()
	a := &w.core.Attr
	zero, most := w.Value(ddb.Number("0")), w.Value(ddb.Integer(maxNumber))
	for _, name := range []string{a.LockTime, a.LockLease, a.LockHeld, a.LockToken, a.LockStolen} {
		n := w.Name(name)
		w.If("(attribute_not_exists(" + n + ") OR " + n + " BETWEEN " + zero + " AND " + most + ")")
	}
	n, sizes := w.Name(a.Writers), ""
	for size := ringID; size <= ringLen; size += ringID {
		if sizes != "" {
			sizes += ", "
		}
		sizes += w.Value(ddb.Number(strconv.Itoa(size)))
	}
	w.If("(attribute_not_exists(" + n + ") OR attribute_type(" + n + ", " + w.Value(ddb.Text("B")) + ") AND size(" + n + ") IN (" + sizes + "))")
}

// MarkUnread leaves the id of a write that has not read the item, which counts the
// version, and demands that what stands there is the library's, and not the id: against
// a copy that something on the way has made.
func (w *Write) MarkUnread(id WriteID) {
	n, v := w.Name(w.core.unread), w.Value(ddb.Bytes(id[:]))
	w.Set(w.core.unread, ddb.Bytes(id[:]))
	w.If("(attribute_not_exists(" + n + ") OR attribute_type(" + n + ", " + w.Value(ddb.Text("B")) + ") AND size(" + n + ") = " + w.Value(ddb.Number(strconv.Itoa(ringID))) + " AND " + n + " <> " + v + ")")
}

// IfMark demands that a mark is not there, or is the library's.
func (w *Write) IfMark(attr string) {
	n := w.Name(attr)
	w.If("(attribute_not_exists(" + n + ") OR " + n + " = " + w.Value(ddb.True()) + ")")
}

// parseNumber reads a number of the lock's attributes.
func parseNumber(v types.AttributeValue) (float64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("type %s, not a number", ddb.TypeName(v))
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f >= maxNumber { // as a float the numbers right above it are equal to it
		return 0, fmt.Errorf("it is not a number from 0 to %d", int64(maxNumber))
	}
	return f, nil
}
