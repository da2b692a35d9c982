package protocol

import "github.com/dynahold/dynahold/internal/ddb"

// EventOrder compares the events of two items: negative if the first is older.
// Without event ids equal times are one event. It is false where they cannot be
// compared.
func (c *Core) EventOrder(a, b ddb.Item) (int, bool) {
	order, ok := ddb.Compare(a[c.EventTime], b[c.EventTime])
	if ok && order == 0 && c.EventID != "" {
		return ddb.Compare(a[c.EventID], b[c.EventID])
	}
	return order, ok
}
