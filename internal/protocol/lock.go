package protocol

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// template is the fixed text of a request; only key and values change.
type template struct {
	update, cond string
	names        map[string]string
	returns      types.ReturnValue
}

// lockTemplates are the lock's requests that never change, made once per table.
// The commit is built per call (Write), since the user's changes are part of it.
type lockTemplates struct {
	acquire template // an item that readers see
	any     template // any item, also a stub or a tombstone
	stub    template // a key without an item
	row     template // any item or none, which is then made
	noTTL   template // the same, and TTL does not remove it from then on
	closed  template // the same for a hold that never ends by itself
	// What was watched, of any item, by its takeover; the condition is made of what
	// was seen.
	watched, watchedClosed template
	extend                 template
	release                template
	unstub                 template // a DeleteItem of a stub
	drop                   template // a DeleteItem of any item
}

// exprOwn is the holder's condition.
const exprOwn = "#lockedBy = :me AND #lockHeld = :token"

func newTemplates(a stored.Attributes, pk string) (lockTemplates, queueTemplates) {
	all := map[string]string{
		"#lockedBy": a.LockedBy, "#lockTime": a.LockTime, "#lockLease": a.LockLease, "#lockHeld": a.LockHeld,
		"#lockToken": a.LockToken, "#lockQueue": a.LockQueue, "#lockStolen": a.LockStolen, "#lockStub": a.LockStub, "#tombstone": a.Tombstone, "#writers": a.Writers, "#ttl": a.TTL, "#pk": pk,
	}
	pick := func(names ...string) map[string]string {
		m := make(map[string]string, len(names))
		for _, n := range names {
			m[n] = all[n]
		}
		return m
	}
	lock := []string{"#lockedBy", "#lockTime", "#lockLease", "#lockHeld", "#lockToken", "#lockStolen", "#pk"}
	rest := []string{"#lockStub", "#tombstone", "#writers"}
	taking := func(update, cond string, names ...[]string) template {
		return template{update: update, cond: cond, names: pick(slices.Concat(names...)...), returns: types.ReturnValueAllNew}
	}
	row := lock[:6] // which need not be there
	templates := lockTemplates{
		acquire:       taking(exprTakeLock, "attribute_exists(#pk) AND "+visible+" AND "+freeAndOurs, lock, rest),
		any:           taking(exprTakeLock, "attribute_exists(#pk) AND "+oursMarked+" AND "+freeAndOurs, lock, rest),
		watched:       taking(exprTakeLock, "", lock),
		watchedClosed: taking(exprTakeClosed, "", lock),
		stub:          taking(exprTakeLock+", #lockStub = :true, #ttl = :ttl", "attribute_not_exists(#pk)", lock, []string{"#lockStub", "#ttl"}),
		row:           taking(exprTakeLock, oursMarked+" AND "+freeAndOurs, row, rest),
		noTTL:         taking(exprTakeLock+" REMOVE #ttl", oursMarked+" AND "+freeAndOurs, row, rest, []string{"#ttl"}),
		closed:        taking(exprTakeClosed, oursMarked+" AND "+freeAndOurs, row, rest),
	}
	templates.ofHolder(pick)
	return templates, newQueueTemplates(pick)
}

// ofHolder makes the templates of what a holder sends.
func (t *lockTemplates) ofHolder(pick func(names ...string) map[string]string) {
	t.extend = template{
		update: "SET #lockTime = :until",
		cond:   exprOwn + " AND #lockTime < :until",
		names:  pick("#lockedBy", "#lockTime", "#lockHeld"),
	}
	t.release = template{
		update: "REMOVE #lockedBy, #lockTime, #lockLease, #lockHeld",
		cond:   exprOwn,
		names:  pick("#lockedBy", "#lockTime", "#lockLease", "#lockHeld"),
	}
	t.unstub = template{
		cond:  exprOwn + " AND attribute_exists(#lockStub)",
		names: pick("#lockedBy", "#lockHeld", "#lockStub"),
	}
	t.drop = template{
		cond:  exprOwn,
		names: pick("#lockedBy", "#lockHeld"),
	}
}

func (c *Core) request(s *template, key, values ddb.Item) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &c.Name,
		Key:                                 key,
		UpdateExpression:                    &s.update,
		ConditionExpression:                 &s.cond,
		ExpressionAttributeNames:            s.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        s.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Stub takes the lock of a key that has no item, by an item that readers do
// not see. ttl lets DynamoDB remove it if nobody else does.
func (c *Core) Stub(key ddb.Item, t Acquire, ttl time.Time) *dynamodb.UpdateItemInput {
	values := t.values()
	values[":true"] = mark
	values[":ttl"] = ddb.Integer(ttl.Unix())
	return c.request(&c.lock.stub, key, values)
}

func ownValues(id string, token int64) ddb.Item {
	return ddb.Item{":me": ddb.Text(id), ":token": ddb.Integer(token)}
}

// Extend moves the end of an own hold; it never moves it back.
func (c *Core) Extend(key ddb.Item, id string, token int64, until time.Time) *dynamodb.UpdateItemInput {
	values := ownValues(id, token)
	values[":until"] = ddb.Number(ddb.Seconds(until))
	return c.request(&c.lock.extend, key, values)
}

// Outlive adds to an extension, or a confirm, that TTL leaves the item alone until a time: both
// end with what they set.
func (c *Core) Outlive(in *dynamodb.UpdateItemInput, ttl time.Time) {
	update := *in.UpdateExpression + ", #ttl = :ttl"
	in.UpdateExpression, in.ExpressionAttributeNames = &update, maps.Clone(in.ExpressionAttributeNames)
	in.ExpressionAttributeNames["#ttl"] = c.Attr.TTL
	in.ExpressionAttributeValues[":ttl"] = ddb.Integer(ttl.Unix())
}

// Release ends an own hold without a change.
func (c *Core) Release(key ddb.Item, id string, token int64) *dynamodb.UpdateItemInput {
	return c.request(&c.lock.release, key, ownValues(id, token))
}

// Unstub ends an own hold of a stub: the key has no item again.
func (c *Core) Unstub(key ddb.Item, id string, token int64) *dynamodb.DeleteItemInput {
	return c.delete(&c.lock.unstub, key, id, token)
}

// Drop ends an own hold by deleting the item.
func (c *Core) Drop(key ddb.Item, id string, token int64) *dynamodb.DeleteItemInput {
	return c.delete(&c.lock.drop, key, id, token)
}

func (c *Core) delete(s *template, key ddb.Item, id string, token int64) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{
		TableName:                           &c.Name,
		Key:                                 key,
		ConditionExpression:                 &s.cond,
		ExpressionAttributeNames:            s.names,
		ExpressionAttributeValues:           ownValues(id, token),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Break ends the hold that was seen, by force, and leaves its token as
// evidence for its holder.
func (c *Core) Break(key, seen ddb.Item) (*dynamodb.UpdateItemInput, error) {
	return c.breaking(seen).Update(key)
}

// BreakMarked is Break for one who must know whether it was applied, also if an
// answer is lost: where the hold has no token of its own to leave as evidence, it
// leaves an id in the ring of writers. An attribute of that name that is no ring is not
// touched.
func (c *Core) BreakMarked(key, seen ddb.Item, id WriteID) (*dynamodb.UpdateItemInput, error) {
	w := c.breaking(seen)
	a := &c.Attr
	l, err := c.ParseRecord(seen)
	ring, there := seen[a.Writers]
	if _, isRing := ring.(*types.AttributeValueMemberB); err == nil && !l.HasToken() && (isRing || !there) {
		w.Set(a.Writers, id.Push(c.Ring(seen)))
		w.IfSeen(seen, a.Writers)
	}
	return w.Update(key)
}

func (c *Core) breaking(seen ddb.Item) *Write {
	w := c.NewWrite()
	a := &c.Attr
	if _, ok := seen[a.LockHeld]; ok {
		w.SetTo(a.LockStolen, w.Name(a.LockHeld))
	}
	w.Unlock()
	if l, err := c.ParseRecord(seen); err == nil && l.Held > l.Stolen {
		if own, _, there := c.ParseQueue(seen).Find(stored.EntryOf(l.By)); there {
			w.Vacate(own.Place) // a holder that drew its lock stands in the queue till it is done
		}
	}
	w.IfExists(c.Partition)
	w.IfSeen(seen, a.LockedBy, a.LockTime, a.LockHeld)
	return w
}
