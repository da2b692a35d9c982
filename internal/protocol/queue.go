package protocol

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// entry is the value of an entry.
func entry(id string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(id)} }

// queueTemplates are the fixed texts of the queue's requests.
type queueTemplates struct {
	enqueue template // on an item that readers see
	any     template // also on a stub or a tombstone
	row     template // on any item or none, which is then made
	closed  template // the same for a hold that never ends by itself
	confirm template
	settle  template // the confirm of a hold that never ends by itself from then on
}

// exprEnqueue is an enqueue: a place, and the lock if it is free, in one step. If it is
// not, everything that names its holder stays as it is. That lockToken grows tells the
// holder that somebody came.
const (
	exprPlace = "SET #lockQueue = list_append(if_not_exists(#lockQueue, :none), :entry), #lockToken = if_not_exists(#lockToken, :floor) + :one, " +
		"#lockedBy = if_not_exists(#lockedBy, :me), #lockTime = if_not_exists(#lockTime, :until), "
	exprIfFree = "#lockHeld = if_not_exists(#lockHeld, if_not_exists(#lockToken, :floor)), " +
		"#lockStolen = if_not_exists(#lockStolen, :before)"
	exprEnqueue = exprPlace + "#lockLease = if_not_exists(#lockLease, :lease), " + exprIfFree
	// exprEnqueueClosed leaves the lease of whoever holds the lock: a hold that never
	// ends has none.
	exprEnqueueClosed = exprPlace + exprIfFree
	// exprWhole refuses what a lock by hand leaves: it names no token, so there is
	// nothing to wait for in a queue. Holds that never end are the same: a lease that
	// was put on one would let watchers take it over. And it refuses what is not the
	// library's.
	exprWhole = exprNoEntry + "(#lockLease BETWEEN :zero AND :most)" + exprOrFree
	// exprWholeClosed lets an enqueue that writes no lease stand behind both.
	exprWholeClosed = exprNoEntry + "((#lockLease BETWEEN :zero AND :most) OR attribute_not_exists(#lockLease) AND #lockTime >= :until)" + exprOrFree

	// exprNoEntry keeps entries apart: none is made that equals another in the queue, or
	// what the present holder's id begins with.
	exprNoEntry = "NOT contains(#lockQueue, :mine) AND NOT contains(#lockedBy, :begins) AND " + oursQueued + " AND " +
		"(attribute_type(#lockedBy, :S) AND (#lockTime BETWEEN :zero AND :most) AND "
	oursQueued = "(attribute_not_exists(#lockQueue) OR attribute_type(#lockQueue, :L)) AND " +
		"(attribute_not_exists(#lockQueue[0]) OR attribute_type(#lockQueue[0], :NULL) OR attribute_type(#lockQueue[0], :B) AND size(#lockQueue[0]) = :length)"
	exprOrFree = " AND (#lockHeld BETWEEN :zero AND :most) OR " +
		"attribute_not_exists(#lockedBy) AND attribute_not_exists(#lockTime) AND attribute_not_exists(#lockLease) AND attribute_not_exists(#lockHeld)) AND " +
		oursCounted + " AND " + oursWritten
)

func newQueueTemplates(pick func(...string) map[string]string) queueTemplates {
	row := []string{"#lockQueue", "#lockedBy", "#lockTime", "#lockLease", "#lockHeld", "#lockToken", "#lockStolen", "#lockStub", "#tombstone", "#writers"}
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
		confirm: template{
			update:  "SET #lockTime = :until, #lockLease = :lease",
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

// Values of an enqueue that are always the same.
var (
	noneWait        = &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	typeL, typeNull = ddb.Text("L"), ddb.Text("NULL")
	entryBytes      = ddb.Integer(stored.EntryLen)
	left            = &types.AttributeValueMemberNULL{Value: true}
)

// entryChars is how many characters of an id's text tell nothing but its entry.
const entryChars = stored.EntryLen * 8 / 6

// Enqueue enters the queue, and takes the lock if it is free. It can be repeated: it is
// applied once at most while its entry stands there, or its id holds.
func (c *Core) Enqueue(key ddb.Item, t Acquire) *dynamodb.UpdateItemInput {
	s, values := c.queue.of(t), t.values()
	if s != &c.queue.enqueue {
		values[":true"] = mark
	}
	ours(values)
	c.typed(values)
	mine := entry(stored.EntryOf(t.ID))
	values[":mine"], values[":entry"], values[":none"] = mine, &types.AttributeValueMemberL{Value: []types.AttributeValue{mine}}, noneWait
	_, random := stored.SplitID(t.ID)
	values[":begins"] = ddb.Text("#" + random[:entryChars])
	values[":L"], values[":NULL"], values[":length"] = typeL, typeNull, entryBytes
	return c.request(s, key, values)
}

// Dequeue leaves the place in the queue that the entry of an acquisition has, unless it
// holds. The place itself stays until a hold ends: so no entry ever comes to stand where
// another one stood, while the hold lasts under which somebody has seen that one there.
func (c *Core) Dequeue(key ddb.Item, id string, place int) (*dynamodb.UpdateItemInput, error) {
	w := c.NewWrite()
	at := w.place(place)
	w.SetPath(at, left)
	w.If(at, " = ", w.Value(entry(stored.EntryOf(id))))
	w.If("NOT ", w.Name(c.Attr.LockedBy), " = ", w.Value(ddb.Text(id)))
	return w.Update(key)
}

// Confirm is Extend for a hold that others were told a shorter lease of. It
// returns the item, which shows who waits by now.
func (c *Core) Confirm(key ddb.Item, id string, token int64, until time.Time, lease time.Duration) *dynamodb.UpdateItemInput {
	values := ownValues(id, token)
	values[":until"] = ddb.Number(ddb.Seconds(until))
	values[":lease"] = ddb.Number(ddb.LeaseSeconds(lease))
	return c.request(&c.queue.confirm, key, values)
}

// Settle makes a hold that was handed over to an entry one that never ends by itself,
// under the id of the acquisition that has made the entry. It returns the item.
func (c *Core) Settle(key ddb.Item, handed, id string, token int64) *dynamodb.UpdateItemInput {
	values := ownValues(handed, token)
	values[":id"], values[":until"] = ddb.Text(id), ddb.Number(ddb.Seconds(ddb.Never()))
	return c.request(&c.queue.settle, key, values)
}

// TakeOver takes the lock that t.Watched shows, dead or free, for one who waits in the
// queue at own. From a dead holder it takes those who stood before it there out of the
// queue, as well as the holder's entry: they have not taken over when they could. All
// who may be concerned see that by lockStolen, which moves then; so where it does
// not, because nobody has held the lock under a token, nobody is taken out.
func (c *Core) TakeOver(key ddb.Item, t Acquire, own stored.Entry) (*dynamodb.UpdateItemInput, error) {
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
	if l, err := c.ParseRecord(t.Watched); err == nil && l.Held > l.Stolen {
		if holder, _, there := c.ParseQueue(t.Watched).Find(stored.EntryOf(l.By)); there && holder.Place > own.Place {
			w.Vacate(holder.Place)
		}
		w.vacateTo(own.Place)
	} else {
		w.Vacate(own.Place)
	}
	w.IfExists(c.Partition)
	w.IfSeen(t.Watched, a.LockedBy, a.LockTime, a.LockHeld)
	w.IfWaits(own)
	in, err := w.Update(key)
	if err == nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	return in, err
}
