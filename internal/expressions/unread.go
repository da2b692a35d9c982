package expressions

import (
	"fmt"
	"slices"

	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// MarkUnread puts the marks of the protocol on a write of a transaction that changes an
// item which is there, and has not read it. Behind another write it would be applied
// twice: that is the limit of a request which is bound to nothing.
func MarkUnread(core *protocol.Core, w *protocol.Write, id protocol.WriteID) {
	DemandVisible(core, w, (*protocol.Write).IfUnlocked)
	lockless.StartRing(w, id)
}

// DemandVisible demands an item that readers see, and that ifFree finds free.
func DemandVisible(core *protocol.Core, w *protocol.Write, ifFree func(*protocol.Write)) {
	w.IfExists(core.Partition)
	w.IfAbsent(core.Attr.LockStub)
	w.IfAbsent(core.Attr.Tombstone)
	ifFree(w)
	lockless.IfOurs(w)
	lockless.StampUpdated(w, core.Clock())
}

// CheckTarget refuses an attribute that is not for a user's expression to change.
func CheckTarget(core *protocol.Core, attr string) error {
	if core.IsKey(attr) || core.Reserved(attr) || attr != "" && slices.Contains([]string{core.Version, core.EventTime, core.EventID, core.Type, core.Created, core.Updated}, attr) ||
		attr == core.Attr.TTL && !slices.Contains(core.Mapped, attr) {
		return fmt.Errorf("%w: the update changes attribute %q, which is the library's to write", repo.ErrFixed, attr)
	}
	if core.IsUnique(attr) {
		return fmt.Errorf("%w: the update changes attribute %q, which is unique: what it was before must be known, so use Update, or Upsert", repo.ErrFixed, attr)
	}
	return nil
}
