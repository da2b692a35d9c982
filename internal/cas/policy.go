package cas

import (
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Policy is how a strategy without locks reads, changes and writes an item.
type Policy struct {
	lock.Settings
	Attempts int      // tries when others write first
	Seen     []string // attributes that must be as read
	Ring     bool     // keep the ring of writers also where the type has no version
	// Hedge is of its writes, where others wait for them.
	Hedge ddb.Hedge
	// Check refuses a change by its encodings; nil: none.
	Check func(before, after ddb.Item) error
	// FailFast ends a call with lock.ErrContended where others hold the item, or wrote
	// first, instead of waiting or trying again.
	FailFast bool
	// Tombstone makes the write that stands for a delete; nil: a DeleteItem.
	Tombstone func(w *protocol.Write, item ddb.Item)
}

// Trace is how a call went.
type Trace struct {
	After     ddb.Item // the item as the call left it; nil: not known, none, or not to be kept
	Read      ddb.Item // what its first read found; nil: it did not read
	Conflicts int      // writes that others' writes refused
	Waited    bool     // somebody held the item's lock
}
