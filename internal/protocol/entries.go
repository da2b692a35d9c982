package protocol

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Entry is a place in the queue on an item: somebody who waits for its lock.
type Entry struct {
	ID    string
	Place int // in the list
}

// Queue are the entries of those who wait, in the order of service.
type Queue []Entry

// ParseQueue reads the queue of an item. Who has left has left NULL in its place, so that
// nobody's place moves under a hold; what is no entry otherwise is nobody's.
func (c *Core) ParseQueue(item ddb.Item) (q Queue) {
	list, _ := item[c.Attr.LockQueue].(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	for place, v := range list.Value {
		if b, ok := v.(*types.AttributeValueMemberB); ok && len(b.Value) == entryLen {
			q = append(q, Entry{string(b.Value), place})
		}
	}
	return q
}

// CheckQueue refuses a queue that is not the library's.
func (c *Core) CheckQueue(item ddb.Item) error {
	v, there := item[c.Attr.LockQueue]
	if !there {
		return nil
	}
	list, isList := v.(*types.AttributeValueMemberL)
	if !isList {
		return &ShapeError{c.Attr.LockQueue, fmt.Errorf("%s, not the places of those who wait in line, a list", describe(v))}
	}
	for _, v := range list.Value {
		b, isEntry := v.(*types.AttributeValueMemberB)
		if _, left := v.(*types.AttributeValueMemberNULL); !left && (!isEntry || len(b.Value) != entryLen) {
			return &ShapeError{c.Attr.LockQueue, fmt.Errorf("%s in a list, not the place of one who waits in line (bytes, %d)", describe(v), entryLen)}
		}
	}
	return nil
}

// Find returns the entry of an id and those who wait before it.
func (q Queue) Find(id string) (entry Entry, ahead Queue, there bool) {
	i := slices.IndexFunc(q, func(w Entry) bool { return w.ID == id })
	if i < 0 {
		return Entry{}, nil, false
	}
	return q[i], q[:i], true
}

// Without is the queue without one entry.
func (q Queue) Without(id string) Queue {
	return slices.DeleteFunc(slices.Clone(q), func(w Entry) bool { return w.ID == id })
}

// Vacated is the queue once a place has been taken out of it, in which none of these stands.
func (q Queue) Vacated(place int) Queue {
	q = slices.Clone(q)
	for i := range q {
		if q[i].Place > place {
			q[i].Place--
		}
	}
	return q
}

// Waiting are those who wait in the queue on an item, in the order of service. The
// entry of who holds it is not one of them.
func (c *Core) Waiting(item ddb.Item) (entries []string) {
	by, _ := item[c.Attr.LockedBy].(*types.AttributeValueMemberS)
	for _, e := range c.ParseQueue(item) {
		if by == nil || e.ID != EntryOf(by.Value) {
			entries = append(entries, idText.EncodeToString([]byte(e.ID)))
		}
	}
	return entries
}

// Order is what an image tells of who came before whom: the holder, and those who wait.
func (c *Core) Order(item ddb.Item) (order []string) {
	if by, ok := item[c.Attr.LockedBy].(*types.AttributeValueMemberS); ok {
		order = append(order, EntryOf(by.Value))
	}
	for _, e := range c.ParseQueue(item) {
		order = append(order, e.ID)
	}
	return order
}

// Follows reports whether an order shows that an entry is the same one as in an earlier
// order: somebody else is there who stands on the same side of it as before. Whose entry
// is taken out of the queue loses all who stood before it there, and whoever comes since
// with the same entry stands behind the others.
func Follows(entry string, before, now []string) bool {
	was, is := slices.Index(before, entry), slices.Index(now, entry)
	if was < 0 || is < 0 {
		return false
	}
	for i, other := range now {
		at := slices.Index(before, other)
		if other != entry && other != "" && at >= 0 && (at < was) == (i < is) {
			return true
		}
	}
	return false
}
