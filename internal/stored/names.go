package stored

import (
	"slices"
	"strings"
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
	return append(once[:], a.UnreadWriter(), a.Delegated(), a.LockedBy, a.LockTime, a.LockLease, a.LockHeld, a.LockToken, a.LockStolen, a.LockStub, a.LockQueue, a.Writers, a.Tombstone, a.TTL)
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
