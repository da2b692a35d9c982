package protocol

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/dynahold/dynahold/internal/ddb"
)

// EntryLen is how much longer the name of an entry's attribute is than their
// prefix.
const EntryLen = entryLen

// entryLen is the length of an entry's id: the first 66 bits of its
// acquisition's id, so that everybody sees which entry is the holder's own.
const entryLen = 11

// next takes the owner's place in lockedBy while a hold that was handed over
// stands: next#<id of the entry>. Its holder is the one who made the entry.
const next = "next"

// NextID is what lockedBy says when the lock was handed over to an entry.
func NextID(entry string) string { return next + "#" + entry }

// EntryOf is the id of the entry that belongs to what lockedBy says; "" for a
// hold by hand.
func EntryOf(by string) string {
	_, random := splitID(by)
	return random[:min(len(random), entryLen)]
}

// ByHand reports whether a hold is not one of this library: by its id, or
// because it lacks what every hold of the library has. A program by hand keeps
// what it does not know, so what the hold before it left there proves nothing.
func (l Record) ByHand() bool {
	_, random := splitID(l.By)
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

// isEntryID reports whether a text can be the id of an entry.
func isEntryID(s string) bool {
	if len(s) != entryLen {
		return false
	}
	for _, r := range []byte(s) {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}
	return true
}

// IsEntry reports whether an attribute is an entry of the queue.
func (a Attributes) IsEntry(name string) bool {
	return a.LockQueue != "" && strings.HasPrefix(name, a.LockQueue) && isEntryID(name[len(a.LockQueue):])
}

// Entry is an entry of the queue on an item: somebody who waits for its lock.
type Entry struct {
	ID     string
	Ticket int64
}

// Queue are the entries in the order of their tickets.
type Queue []Entry

// ParseQueue reads the entries of an item. What is not a ticket is no entry.
func (c *Core) ParseQueue(item ddb.Item) (q Queue) {
	for name, v := range item {
		if !c.Attr.IsEntry(name) {
			continue
		}
		if ticket, err := ddb.Int(v); err == nil {
			q = append(q, Entry{name[len(c.Attr.LockQueue):], ticket})
		}
	}
	slices.SortFunc(q, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), strings.Compare(a.ID, b.ID))
	})
	return q
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

// entry is the attribute of an entry.
func (c *Core) entry(id string) string { return c.Attr.LockQueue + id }

// queueTemplates are the fixed texts of the queue's requests.
type queueTemplates struct {
	enqueue template // on an item that readers see
	any     template // also on a stub or a tombstone
	row     template // on any item or none, which is then made
	closed  template // the same for a hold that never ends by itself
	dequeue template
	confirm template
	settle  template // the confirm of a hold that never ends by itself from then on
}

// exprEnqueue is an enqueue: a number, and the lock if it is free, in one step. If it is
// not, everything that names its holder stays as it is.
const (
	exprNumber = "SET #entry = if_not_exists(#lockToken, :floor), #lockToken = if_not_exists(#lockToken, :floor) + :one, " +
		"#lockedBy = if_not_exists(#lockedBy, :me), #lockTime = if_not_exists(#lockTime, :until), "
	exprIfFree = "#lockHeld = if_not_exists(#lockHeld, if_not_exists(#lockToken, :floor)), " +
		"#lockStolen = if_not_exists(#lockStolen, :before)"
	exprEnqueue = exprNumber + "#lockLease = if_not_exists(#lockLease, :lease), " + exprIfFree
	// exprEnqueueClosed leaves the lease of whoever holds the lock: a hold that never
	// ends has none.
	exprEnqueueClosed = exprNumber + exprIfFree
	// exprWhole refuses what a lock by hand leaves: it names no token, so there is
	// nothing to wait for in a queue. Holds that never end are the same: a lease that
	// was put on one would let watchers take it over. And it refuses what is not the
	// library's.
	exprWhole = exprNoEntry + "(#lockLease BETWEEN :zero AND :most)" + exprOrFree
	// exprWholeClosed lets an enqueue that writes no lease stand behind both.
	exprWholeClosed = exprNoEntry + "((#lockLease BETWEEN :zero AND :most) OR attribute_not_exists(#lockLease) AND #lockTime >= :until)" + exprOrFree

	exprNoEntry = "attribute_not_exists(#entry) AND (attribute_type(#lockedBy, :S) AND (#lockTime BETWEEN :zero AND :most) AND "
	exprOrFree  = " AND (#lockHeld BETWEEN :zero AND :most) OR " +
		"attribute_not_exists(#lockedBy) AND attribute_not_exists(#lockTime) AND attribute_not_exists(#lockLease) AND attribute_not_exists(#lockHeld)) AND " +
		oursCounted + " AND " + oursWritten
)

func newQueueTemplates(pick func(...string) map[string]string) queueTemplates {
	row := []string{"#lockedBy", "#lockTime", "#lockLease", "#lockHeld", "#lockToken", "#lockStolen", "#lockStub", "#tombstone", "#writers"}
	lock := append([]string{"#pk"}, row...)
	return queueTemplates{
		enqueue: template{
			update:  exprEnqueue,
			cond:    "attribute_exists(#pk) AND " + visible + " AND " + exprWhole,
			names:   pick(lock...),
			returns: types.ReturnValueAllNew,
		},
		any: template{
			update:  exprEnqueue,
			cond:    "attribute_exists(#pk) AND " + oursMarked + " AND " + exprWhole,
			names:   pick(lock...),
			returns: types.ReturnValueAllNew,
		},
		row: template{
			update:  exprEnqueue,
			cond:    oursMarked + " AND " + exprWhole,
			names:   pick(row...),
			returns: types.ReturnValueAllNew,
		},
		closed: template{
			update:  exprEnqueueClosed,
			cond:    oursMarked + " AND " + exprWholeClosed,
			names:   pick(row...),
			returns: types.ReturnValueAllNew,
		},
		dequeue: template{
			update: "REMOVE #entry",
			cond:   "attribute_exists(#entry) AND (attribute_not_exists(#lockedBy) OR #lockedBy <> :me)",
			names:  pick("#lockedBy"),
		},
		confirm: template{
			update:  "SET #lockTime = :until, #lockLease = :lease REMOVE #entry",
			cond:    exprOwn + " AND #lockTime < :until",
			names:   pick("#lockedBy", "#lockTime", "#lockLease", "#lockHeld"),
			returns: types.ReturnValueAllNew,
		},
		settle: template{
			update:  "SET #lockedBy = :id, #lockTime = :until REMOVE #lockLease",
			cond:    exprOwn,
			names:   pick("#lockedBy", "#lockTime", "#lockLease", "#lockHeld"),
			returns: types.ReturnValueAllNew,
		},
	}
}

// of is the fixed text of an enqueue.
func (s *queueTemplates) of(t Acquire) *template {
	return t.choose(&s.enqueue, &s.any, &s.row, &s.closed)
}

// onEntry is a request with a fixed text about one entry.
func (c *Core) onEntry(s *template, key, values ddb.Item, entry string) *dynamodb.UpdateItemInput {
	in := c.request(s, key, values)
	in.ExpressionAttributeNames = maps.Clone(s.names)
	in.ExpressionAttributeNames["#entry"] = c.entry(entry)
	return in
}

// Enqueue enters the queue, and takes the lock if it is free. It can be repeated:
// if it landed, the image of its failed condition has its entry or its id.
func (c *Core) Enqueue(key ddb.Item, t Acquire) *dynamodb.UpdateItemInput {
	s, values := c.queue.of(t), t.values()
	if s != &c.queue.enqueue {
		values[":true"] = mark
	}
	ours(values)
	c.typed(values)
	return c.onEntry(s, key, values, EntryOf(t.ID))
}

// Dequeue takes the entry of an acquisition out of the queue, unless it holds.
func (c *Core) Dequeue(key ddb.Item, id string) *dynamodb.UpdateItemInput {
	return c.onEntry(&c.queue.dequeue, key, ddb.Item{":me": ddb.Text(id)}, EntryOf(id))
}

// Confirm is Extend for a hold that others were told a shorter lease of. It
// returns the item, which shows who waits by now.
func (c *Core) Confirm(key ddb.Item, id string, token int64, until time.Time, lease time.Duration) *dynamodb.UpdateItemInput {
	values := ownValues(id, token)
	values[":until"] = ddb.Number(ddb.Seconds(until))
	values[":lease"] = ddb.Number(ddb.LeaseSeconds(lease))
	return c.onEntry(&c.queue.confirm, key, values, EntryOf(id))
}

// Settle makes a hold that was handed over to an entry one that never ends by itself,
// under the id of the acquisition that has made the entry. It returns the item.
func (c *Core) Settle(key ddb.Item, handed, id string, token int64) *dynamodb.UpdateItemInput {
	values := ownValues(handed, token)
	values[":id"], values[":until"] = ddb.Text(id), ddb.Number(ddb.Seconds(ddb.Never()))
	return c.request(&c.queue.settle, key, values)
}

// Waiting are the numbers of those who wait in the queue on an item, in the order of
// service. The entry of who holds it is not one of them.
func (c *Core) Waiting(item ddb.Item) (numbers []int64) {
	by, _ := item[c.Attr.LockedBy].(*types.AttributeValueMemberS)
	for _, entry := range c.ParseQueue(item) {
		if by == nil || entry.ID != EntryOf(by.Value) {
			numbers = append(numbers, entry.Ticket)
		}
	}
	return numbers
}

// TakeOver takes the lock that t.Watched shows, dead or free, for one who
// waits in the queue under ticket, and removes the entries gone: those of dead
// waiters.
func (c *Core) TakeOver(key ddb.Item, t Acquire, ticket int64, gone []string) (*dynamodb.UpdateItemInput, error) {
	w, a := c.NewWrite(), &c.Attr
	floor := w.Value(ddb.Integer(t.Now.UnixMicro()))
	before := w.Value(ddb.Integer(t.Now.UnixMicro() - 1))
	token := "if_not_exists(" + w.Name(a.LockToken) + ", " + floor + ")"
	w.Set(a.LockedBy, ddb.Text(t.ID))
	w.Set(a.LockTime, ddb.Number(ddb.Seconds(t.Until)))
	if t.Lease > 0 {
		w.Set(a.LockLease, ddb.Number(ddb.LeaseSeconds(t.Lease)))
	} else {
		w.Remove(a.LockLease)
	}
	w.SetTo(a.LockHeld, token)
	w.SetTo(a.LockToken, token+" + "+w.Value(ddb.Number("1")))
	w.SetTo(a.LockStolen, "if_not_exists("+w.Name(a.LockHeld)+", if_not_exists("+w.Name(a.LockStolen)+", "+before+"))")
	own := c.entry(EntryOf(t.ID))
	w.Remove(own)
	for _, id := range gone {
		w.Remove(c.entry(id))
	}
	w.IfExists(c.Partition)
	w.IfSeen(t.Watched, a.LockedBy, a.LockTime, a.LockHeld)
	w.IfEqual(own, ddb.Integer(ticket))
	in, err := w.Update(key)
	if err == nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	return in, err
}
