package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/recent"
)

// Attributes are the names of what the library keeps on an item.
type Attributes struct {
	LockedBy, LockTime, LockLease, LockHeld, LockToken, LockStolen, LockStub, LockQueue string
	Writers                                                                             string
	Once                                                                                string // beginning of three names
	Tombstone, TTL                                                                      string
}

// Names are all names.
func (a Attributes) Names() []string {
	once := a.OnceNames()
	return append(once[:], a.UnreadWriter(), a.LockedBy, a.LockTime, a.LockLease, a.LockHeld, a.LockToken, a.LockStolen, a.LockStub, a.LockQueue, a.Writers, a.Tombstone, a.TTL)
}

// Clash is a name that is also one of others, or begins with one of their
// prefixes, "" if there is none: for packages whose rows have attributes of
// their own.
func (a Attributes) Clash(others, prefixes []string) string {
	for _, name := range a.Names() {
		if slices.Contains(others, name) || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return name
		}
	}
	return ""
}

// Core is what every protocol needs to know of a table and its items.
type Core struct {
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
	Shares    bool          // the user's type may share parts of what it is decoded from or encoded to
	Retention time.Duration // length of an epoch: for how long ids of operations are remembered at least

	witness *witness
	sights  *sights
	done    *recent.Memory[bool] // ids of own writes that are judged

	once   [3]string // Attr.OnceNames
	unread string    // Attr.UnreadWriter
	lock   lockTemplates
	queue  queueTemplates
}

// NewCore prepares the expressions of a table, and looks at its images from then on.
func NewCore(c Core) *Core {
	c.lock, c.queue = newTemplates(c.Attr, c.Partition)
	for s, expr := range map[*template]string{
		&c.lock.acquire: exprType, &c.lock.any: exprTypeOrNot, &c.queue.enqueue: exprType, &c.queue.any: exprTypeOrNot,
	} {
		*s = s.demand(&c, expr)
	}
	c.once, c.unread = c.Attr.OnceNames(), c.Attr.UnreadWriter()
	c.done = recent.New[bool](judgedKept)
	c.witness = &witness{writes: map[WriteID][]*Evidence{}}
	c.sights = &sights{memory: recent.New[Sight](sightsKept)}
	c.Table.Saw = c.Saw
	return &c
}

// ItemName is what an error calls an item by its key.
func (c *Core) ItemName(key fmt.Stringer) string {
	return fmt.Sprintf("item %v in table %q", key, c.Name)
}

// HasRoles reports whether the library writes on items what says their type, or when
// they were made or changed.
func (c *Core) HasRoles() bool { return c.Type+c.Created+c.Updated != "" }

// Named are those of some attributes that the type has: the others have no name.
func (c *Core) Named(attributes ...string) []string {
	return slices.DeleteFunc(attributes, func(name string) bool { return name == "" })
}

// Reserved reports whether an attribute belongs to the library.
func (c *Core) Reserved(name string) bool {
	a := &c.Attr
	switch name {
	case a.LockedBy, a.LockTime, a.LockLease, a.LockHeld, a.LockToken, a.LockStolen, a.LockStub, a.LockQueue, a.Writers, a.Tombstone, c.unread:
		return true
	}
	return c.IsOnce(name)
}

// Hidden reports whether an item is there for the library's use only: readers
// see "not found".
func (c *Core) Hidden(item ddb.Item) bool {
	return len(item) == 0 || isTrue(item[c.Attr.LockStub]) || isTrue(item[c.Attr.Tombstone])
}

// LockOnly reports whether an item is nothing but a lock: it has no attributes
// but the key, the library's, and others that are named.
func (c *Core) LockOnly(item ddb.Item, others ...string) bool {
	for name := range item {
		if !c.IsKey(name) && !c.Reserved(name) && name != c.Attr.TTL && !slices.Contains(others, name) {
			return false
		}
	}
	return true
}

// Heartbeat are the attributes that identify a hold and its last extension.
func (c *Core) Heartbeat(item ddb.Item) ddb.Item {
	beat := ddb.Item{}
	for _, name := range []string{c.Attr.LockedBy, c.Attr.LockTime, c.Attr.LockHeld} {
		if v, ok := item[name]; ok {
			beat[name] = v
		}
	}
	return beat
}
