package stored

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// EntryLen is how many bytes an entry of the queue has: the first ones of its
// acquisition's id. Every write bills them for each who waits, so they are few, and two
// acquisitions may have the same: no entry is made while another of the same bytes stands
// in the queue, or while a holder's id begins so; and who stands in it goes by more than
// them (protocol.Follows).
const EntryLen = 4

// next takes the owner's place in lockedBy while a hold that was handed over
// stands: next#<the entry>. Its holder is the one who made the entry.
const next = "next"

// NextID is what lockedBy says when the lock was handed over to an entry.
func NextID(entry string) string { return next + "#" + idText.EncodeToString([]byte(entry)) }

// EntryOf is the entry that belongs to what lockedBy says; "" for a hold by hand.
func EntryOf(by string) string {
	_, random := SplitID(by)
	var room [idBytes + 2]byte
	b, err := idText.AppendDecode(room[:0], []byte(random))
	if err != nil || len(b) < EntryLen {
		return ""
	}
	return string(b[:EntryLen])
}

// ByHand reports whether a hold is not one of this library: by its id, or
// because it lacks what every hold of the library has. A program by hand keeps
// what it does not know, so what the hold before it left there proves nothing.
func (l Record) ByHand() bool {
	_, random := SplitID(l.By)
	return random == "" || !l.whole()
}

// whole reports whether the hold has all that the library writes with one.
func (l Record) whole() bool {
	return l.Timed && l.Held > 0 && l.Token > l.Held && (l.Lease > 0 || l.Endless())
}

// HasToken reports whether the token that stands on the item is the hold's own: a
// lock that was taken by hand has none, and leaves what it finds.
func (l Record) HasToken() bool { return l.Held != 0 && !l.ByHand() }

// Handed reports whether the hold was handed over and its holder has shown no
// sign of life yet.
func (l Record) Handed() bool {
	entry, handed := strings.CutPrefix(l.By, next+"#")
	return handed && isEntryID(entry) && l.whole()
}

// isEntryID reports whether a text can be the id of an entry in lockedBy.
func isEntryID(s string) bool {
	b, err := idText.DecodeString(s)
	return err == nil && len(b) == EntryLen
}

// Entry is a place in the queue on an item: somebody who waits for its lock.
type Entry struct {
	ID    string
	Place int // in the list
}

// Queue are the entries of those who wait, in the order of service.
type Queue []Entry

// ParseQueue reads the queue of an item. Who has left has left NULL in its place, so that
// nobody's place moves under a hold; what is no entry otherwise is nobody's.
func (t *Table) ParseQueue(item ddb.Item) (q Queue) {
	list, _ := item[t.Attr.LockQueue].(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	for place, v := range list.Value {
		if b, ok := v.(*types.AttributeValueMemberB); ok && len(b.Value) == EntryLen {
			q = append(q, Entry{string(b.Value), place})
		}
	}
	return q
}

// CheckQueue refuses a queue that is not the library's.
func (t *Table) CheckQueue(item ddb.Item) error {
	v, there := item[t.Attr.LockQueue]
	if !there {
		return nil
	}
	list, isList := v.(*types.AttributeValueMemberL)
	if !isList {
		return &ShapeError{t.Attr.LockQueue, fmt.Errorf("%s, not the places of those who wait in line, a list", describe(v))}
	}
	for _, v := range list.Value {
		b, isEntry := v.(*types.AttributeValueMemberB)
		if _, left := v.(*types.AttributeValueMemberNULL); !left && (!isEntry || len(b.Value) != EntryLen) {
			return &ShapeError{t.Attr.LockQueue, fmt.Errorf("%s in a list, not the place of one who waits in line (bytes, %d)", describe(v), EntryLen)}
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
func (t *Table) Waiting(item ddb.Item) (entries []string) {
	by, _ := item[t.Attr.LockedBy].(*types.AttributeValueMemberS)
	for _, e := range t.ParseQueue(item) {
		if by == nil || e.ID != EntryOf(by.Value) {
			entries = append(entries, idText.EncodeToString([]byte(e.ID)))
		}
	}
	return entries
}
