package stored

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Table is what the library needs to know of a table and its items. New makes it usable.
type Table struct {
	*ddb.Table
	Attr    Attributes
	Version string // attribute that counts data writes, "" without one
	// MostVersion is the greatest one that the type can have.
	MostVersion int64
	EventTime   string // attribute of the event time, "" without one
	EventID     string // attribute that breaks ties of event times, "" without one
	IDKind      string // its type, S or N
	// EventSeconds says that the event time is a time, kept in whole Unix seconds,
	// rather than an integer of the user's own unit.
	EventSeconds bool
	Roles
	Unique Uniques // what no two items have alike
	// KeyOf is a primary key as errors name it.
	KeyOf func(key ddb.Item) fmt.Stringer
	// Clock is the time by which items are stamped, ends of leases written, and those of
	// others judged.
	Clock func() time.Time
	// Jumps says that Clock is not the machine's own: it may jump while somebody sleeps.
	Jumps bool
	// Transacts says that transactions are needed, which not every kind of table
	// has: EnsureTable refuses one without.
	Transacts bool
	// AnyAttribute says that expressions may name attributes that the type does not have.
	AnyAttribute bool
	Shares       bool          // the user's type may share parts of what it is decoded from or encoded to
	Retention    time.Duration // length of an epoch: for how long ids of operations are remembered at least

	Once      [3]string // Attr.OnceNames
	Unread    string    // Attr.UnreadWriter
	Delegated string    // Attr.Delegated
	OnceRoom  int       // for how many ids of operations an item has room

	watcher atomic.Pointer[func(ddb.Item)]
	making  sync.Once
	core    any
}

// New completes a table.
func New(t *Table) *Table {
	t.Once, t.Unread, t.Delegated = t.Attr.OnceNames(), t.Attr.UnreadWriter(), t.Attr.Delegated()
	t.OnceRoom = OnceRoom
	t.Table.Saw = t.Saw
	return t
}

// Core is what those who write items have in common (protocol.Core), made by the first
// of them: a program that only reads makes none.
func (t *Table) Core(make func() any) any {
	t.making.Do(func() { t.core = make() })
	return t.core
}

// Watch has each image that this process gets from now on shown to somebody.
func (t *Table) Watch(saw func(image ddb.Item)) { t.watcher.Store(&saw) }

// Saw shows an image. Nobody changes it from then on.
func (t *Table) Saw(image ddb.Item) {
	if saw := t.watcher.Load(); saw != nil {
		(*saw)(image)
	}
}

// ItemName is what an error calls an item by its key.
func (t *Table) ItemName(key fmt.Stringer) string {
	return fmt.Sprintf("item %v in table %q", key, t.Name)
}

// HasRoles reports whether the library writes on items what says their type, or when
// they were made or changed.
func (t *Table) HasRoles() bool { return t.Type+t.Created+t.Updated != "" }

// Named are those of some attributes that the type has: the others have no name.
func (t *Table) Named(attributes ...string) []string {
	return slices.DeleteFunc(attributes, func(name string) bool { return name == "" })
}

// Reserved reports whether an attribute belongs to the library.
func (t *Table) Reserved(name string) bool {
	a := &t.Attr
	switch name {
	case a.LockedBy, a.LockTime, a.LockLease, a.LockHeld, a.LockToken, a.LockStolen, a.LockStub, a.LockQueue, a.Writers, a.Tombstone, t.Unread, t.Delegated:
		return true
	}
	return t.IsOnce(name)
}

// Hidden reports whether an item is there for the library's use only: readers
// see "not found".
func (t *Table) Hidden(item ddb.Item) bool {
	return len(item) == 0 || isTrue(item[t.Attr.LockStub]) || isTrue(item[t.Attr.Tombstone])
}

// Get reads an item with a consistent read, and refuses one with foreign
// attributes under the library's names, or of another type than the table's.
func (t *Table) Get(ctx context.Context, key ddb.Item) (ddb.Item, error) {
	return t.GetFor(ctx, key, ddb.Options{})
}

// GetFor is Get with options.
func (t *Table) GetFor(ctx context.Context, key ddb.Item, opt ddb.Options) (ddb.Item, error) {
	res := t.Read(ctx, key, opt)
	if res.Err != nil {
		return nil, fmt.Errorf("item %v: %w", t.KeyOf(key), res.Err) // which names the table
	}
	if err := t.CheckType(res.Item); err != nil {
		return nil, err
	}
	if err := t.CheckShape(res.Item); err != nil {
		return nil, t.Classify(fmt.Errorf("%s: %w", t.ItemName(t.KeyOf(key)), err))
	}
	return res.Item, nil
}

// Roles are what else a type has the library write on its items.
type Roles struct {
	// Type is the attribute that names an item's type, for types that share a table,
	// and TypeName its value; "" without one.
	Type     string
	TypeName types.AttributeValue
	// Mistyped is the error of an item of another type.
	Mistyped func(item ddb.Item) error
	// Created and Updated are the attributes that say when; "" without them.
	Created, Updated string
	// Stamp encodes a time as those have it: both for an item that begins, else
	// Updated alone.
	Stamp func(now time.Time, begins bool) []ddb.Attribute
}

// CheckType refuses an item of another type than the table's. What readers do not
// see is of none.
func (t *Table) CheckType(item ddb.Item) error {
	if t.Type == "" || t.Hidden(item) || ddb.Equal(item[t.Type], t.TypeName) {
		return nil
	}
	return t.Mistyped(item)
}
