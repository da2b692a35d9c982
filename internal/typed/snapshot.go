package typed

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// ApplyTo is what a stored item is after a change: who wrote it need not read it.
// writers is the ring that the write left, nil where it left none; count is how
// many changes it stands for. Nobody holds the item in it.
func ApplyTo(core *protocol.Core, raw ddb.Item, d ddb.Diff, writers types.AttributeValue, count int64) (after ddb.Item) {
	after = maps.Clone(raw)
	if after == nil {
		after = ddb.Item{}
	}
	a := &core.Attr
	if raw[a.LockStub] != nil || raw[a.Tombstone] != nil {
		delete(after, a.TTL) // as Unhide does; the change may set it again
	}
	for _, name := range []string{a.LockedBy, a.LockTime, a.LockLease, a.LockHeld, a.LockStub, a.Tombstone} {
		delete(after, name)
	}
	for _, v := range d.Set {
		after[v.Name] = v.Value
	}
	for _, name := range d.Remove {
		delete(after, name)
	}
	if core.Version != "" && writers != nil {
		base := int64(0) // a new item begins anew, as Bump counts
		if !core.Hidden(raw) {
			base = Version(core, raw)
		}
		after[core.Version] = ddb.Integer(base + count)
	}
	if writers != nil {
		after[a.Writers] = writers
	}
	return after
}
