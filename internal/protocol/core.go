package protocol

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/stored"
)

// marksKept is of how many items of a table the process remembers the mark.
const marksKept = 1_000

// Core is a table to those who write its items: what is stored there, the texts of the
// requests, and what this process knows of its own writes.
type Core struct {
	*stored.Table

	witness *witness
	sights  *sights
	done    *recent.Memory[bool] // ids of own writes that are judged
	pulse   pulse
	Refused atomic.Uint64 // how often others have refused a transaction at these items, lately
	// Marks are those of items with ids in rows beside them, as this process has seen them last.
	Marks *recent.Memory[types.AttributeValue]

	lock  lockTemplates
	queue queueTemplates
}

// Of is the core of a table: one for all who write its items, which sees from then on the
// images that this process gets.
func Of(t *stored.Table) *Core {
	return t.Core(func() any {
		c := &Core{
			Table:   t,
			witness: &witness{writes: map[WriteID][]*Evidence{}},
			sights:  &sights{memory: recent.New[Sight](sightsKept)},
			pulse:   pulse{raced: recent.New[time.Time](racedKept)},
			done:    recent.New[bool](judgedKept),
			Marks:   recent.New[types.AttributeValue](marksKept),
		}
		c.lock, c.queue = newTemplates(c.Attr, c.Partition)
		for s, expr := range map[*template]string{
			&c.lock.acquire: exprType, &c.lock.any: exprTypeOrNot, &c.queue.enqueue: exprType, &c.queue.any: exprTypeOrNot,
		} {
			*s = s.demand(c, expr)
		}
		t.Watch(c.Saw)
		return c
	}).(*Core)
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
