package repo

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// State is everything that the library's attributes on an item say, for tools of
// operators.
type State struct {
	Lock      Lock
	ByHand    bool      // the lock was taken without this library
	Endless   bool      // the lock does not end by itself: a named lock that is fail-closed
	Handed    bool      // the lock was handed over to one who waited: Lock.Owner does not name it
	Waiting   []string  // those who wait in the queue, in the order of service, each under a short id
	Writes    int       // latest writes whose ids the item keeps, by which writers know their own
	OnceIDs   int       // ids of operations that the item remembers, so that they are not made again
	Tombstone bool      // the item was deleted, and is kept so that late events stay out
	Expires   time.Time // when DynamoDB may remove the item; zero: it does not, or the time cannot be read
	Foreign   []Foreign // what is not the library's: every call on the item fails with ErrSchema
}

// Foreign is an attribute that has one of the library's names, and neither type
// nor shape of what the library writes there.
type Foreign struct {
	Name string // of the attribute
	Role string // the field of Attributes that gives the library's attribute another name
	Why  string // it is not the library's
}

// State reads the library's attributes of an item, such as one of a GetItem or a
// Scan. Where some are foreign, it says of the rest what can be read. It sends
// nothing.
func (t *KeyTable) State(item map[string]types.AttributeValue) State {
	ours, foreign := t.partForeign(item)
	l, err := t.core.ParseRecord(ours)
	if err != nil {
		return State{Foreign: foreign} // not reached: what could not be read is in foreign
	}
	s := State{
		Lock: lockOf(l), ByHand: l.Busy() && l.ByHand(), Endless: l.Busy() && l.Endless(), Handed: l.Handed(),
		Writes:    t.core.Writes(ours),
		OnceIDs:   t.core.OnceIDs(ours),
		Tombstone: ours[t.core.Attr.Tombstone] != nil,
		Waiting:   t.core.Waiting(ours),
		Foreign:   foreign,
	}
	if v, ok := ours[t.core.Attr.TTL]; ok {
		s.Expires, _ = ddb.Time(v) // it may be the user's own
	}
	return s
}

// partForeign parts an item from its foreign attributes. One after the other is
// taken away until nothing is wrong with the rest.
func (t *KeyTable) partForeign(item ddb.Item) (ours ddb.Item, foreign []Foreign) {
	ours = maps.Clone(item)
	var shape *stored.ShapeError
	for errors.As(t.core.CheckShape(ours), &shape) {
		foreign = append(foreign, Foreign{shape.Attribute, Attributes(t.core.Attr).roleOf(shape.Attribute), shape.Err.Error()})
		delete(ours, shape.Attribute)
	}
	if errors.As(t.core.CheckQueue(ours), &shape) {
		foreign = append(foreign, Foreign{shape.Attribute, "LockQueue", shape.Err.Error()})
		delete(ours, shape.Attribute)
	}
	slices.SortFunc(foreign, func(a, b Foreign) int { return strings.Compare(a.Name, b.Name) })
	return ours, foreign
}

// Role is the field of Attributes that names an attribute, such as "Writers" of
// "writers"; "" if the name is not one that the library keeps for itself.
func (t *KeyTable) Role(attribute string) string {
	return Attributes(t.core.Attr).roleOf(attribute)
}

func lockOf(l stored.Record) Lock {
	return Lock{Held: l.Busy(), Owner: l.Owner(), Token: l.Held, Last: max(l.Token-1, 0), Until: l.Until, Lease: l.Lease, Since: l.Asked(), Stub: l.Stub}
}
