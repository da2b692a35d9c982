package protocol

import (
	"maps"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// exprTakeLock gives out the token that is next, which lockToken has: a function's
// operand cannot be a sum, and an enqueue (queue.go) must be able to write "the
// token that stands, else the next one". Where an item begins to be locked,
// lockStolen begins right below the tokens: whoever held an earlier item of
// this key finds it above its own token, and draws no conclusion.
const (
	exprTakeToken  = "#lockToken = if_not_exists(#lockToken, :floor) + :one, #lockHeld = if_not_exists(#lockToken, :floor), "
	exprNoteStolen = "#lockStolen = if_not_exists(#lockHeld, if_not_exists(#lockStolen, :before))"
	exprTakeLock   = "SET #lockedBy = :me, #lockTime = :until, #lockLease = :lease, " + exprTakeToken + exprNoteStolen
	// exprTakeClosed names no lease: nobody who watches the hold may take it over.
	exprTakeClosed = "SET #lockedBy = :me, #lockTime = :until, " + exprTakeToken + exprNoteStolen + " REMOVE #lockLease"
	// exprFree is a lock that nobody has, or that is past its end. An end below zero,
	// or somebody's attribute under our name, lets nobody in.
	exprFree = "(attribute_not_exists(#lockTime) AND attribute_not_exists(#lockedBy) OR " +
		"#lockTime >= :zero AND #lockTime < :expired AND (attribute_not_exists(#lockedBy) OR attribute_type(#lockedBy, :S)))"
	// What a lock would overwrite, or whoever reads the item next would stumble
	// over, must be the library's (see CheckShape).
	oursHeld    = "(attribute_not_exists(#lockLease) OR #lockLease BETWEEN :zero AND :most) AND (attribute_not_exists(#lockHeld) OR #lockHeld BETWEEN :zero AND :most)"
	oursCounted = "(attribute_not_exists(#lockToken) OR #lockToken BETWEEN :zero AND :most) AND (attribute_not_exists(#lockStolen) OR #lockStolen BETWEEN :zero AND :most)"
	oursWritten = "(attribute_not_exists(#writers) OR attribute_type(#writers, :B))"
	oursMarked  = "(attribute_not_exists(#lockStub) OR #lockStub = :true) AND (attribute_not_exists(#tombstone) OR #tombstone = :true)"
	visible     = "attribute_not_exists(#lockStub) AND attribute_not_exists(#tombstone)"
	freeAndOurs = exprFree + " AND " + oursHeld + " AND " + oursCounted + " AND " + oursWritten
)

// Acquire describes one try to take a lock.
type Acquire struct {
	ID     string
	Now    time.Time     // on the taker's clock
	Until  time.Time     // when others may take over
	Lease  time.Duration // written for watchers without trusted clocks; 0: the hold never ends by itself
	Skew   time.Duration // how far a hold must be past its end to be taken over
	Hidden bool          // also take stubs and tombstones
	Row    bool          // also take a key without an item, in the same request
	NoTTL  bool          // of a row: TTL does not remove it from then on
	// Clockless trusts no clock: only a free item is taken, or Watched.
	Clockless bool
	Watched   ddb.Item // take over this hold, seen unchanged for a full lease
	// Seen is the greatest token that the taker has seen on this key: those of an
	// item that is made anew begin above it, as far as those of another life do.
	Seen int64
	// Claim, if set, is what the row is taken for; of a row with NoTTL alone.
	Claim *Claim
}

// Claim binds a row to a request while its holder lives, and behind a holder who has died:
// whoever comes for another request does not take it.
type Claim struct {
	Attr      string               // of the request
	Value     types.AttributeValue // nil: the taker has none, and takes any row
	Done      string               // attribute with the token of the hold that has done what it was taken for
	Forgotten time.Time            // a hold that ended before is nobody's any more
}

// What lets a claim take a row that has another one: its holder is done, has been removed,
// or is forgotten.
const exprClaimable = " AND (attribute_not_exists(#claim) OR #claim = :claim OR #claimDone = #lockHeld OR attribute_not_exists(#lockedBy) OR #lockTime < :forgotten)"

// on adds the claim to the taking of a row.
func (c *Claim) on(in *dynamodb.UpdateItemInput) {
	update, cond := *in.UpdateExpression+", #claim", *in.ConditionExpression // behind REMOVE
	in.ExpressionAttributeNames = maps.Clone(in.ExpressionAttributeNames)
	in.ExpressionAttributeNames["#claim"] = c.Attr
	if c.Value != nil {
		update = "SET #claim = :claim, " + strings.TrimPrefix(*in.UpdateExpression, "SET ")
		cond += exprClaimable
		in.ExpressionAttributeNames["#claimDone"] = c.Done
		in.ExpressionAttributeValues[":claim"] = c.Value
		in.ExpressionAttributeValues[":forgotten"] = ddb.Number(ddb.Seconds(c.Forgotten))
	}
	in.UpdateExpression, in.ConditionExpression = &update, &cond
}

// Floor is the first token of an item that was never locked.
func (t *Acquire) Floor() int64 {
	now := t.Now.UnixMicro()
	if t.Seen > math.MaxInt64/2 { // not a token of ours
		return now
	}
	return max(now, t.Seen+lifeSpan+1)
}

// Values that are always the same: what is sent is read only.
var (
	zero, one, most = ddb.Number("0"), ddb.Number("1"), ddb.Integer(stored.MaxNumber)
	typeS, typeB    = ddb.Text("S"), ddb.Text("B")
	mark            = ddb.True()
)

func (t *Acquire) values() ddb.Item {
	floor := t.Floor()
	values := make(ddb.Item, 16) // with what its callers add
	values[":me"] = ddb.Text(t.ID)
	values[":until"] = ddb.Number(ddb.Seconds(t.Until))
	values[":floor"] = ddb.Integer(floor)
	values[":before"] = ddb.Integer(floor - 1)
	values[":one"] = one
	if t.Lease > 0 {
		values[":lease"] = ddb.Number(ddb.LeaseSeconds(t.Lease))
	}
	return values
}

// of is the fixed text of a try.
func (s *lockTemplates) of(t Acquire) *template {
	if t.NoTTL {
		return &s.noTTL
	}
	return t.choose(&s.acquire, &s.any, &s.row, &s.closed)
}

// choose is the one of some fixed texts that fits what is taken: an item, one that may be
// hidden, a row, or a row without an end.
func (t *Acquire) choose(visible, hidden, row, closed *template) *template {
	switch {
	case t.Row && t.Lease == 0:
		return closed
	case t.Row:
		return row
	case t.Hidden:
		return hidden
	}
	return visible
}

// Acquire takes a free or expired lock and reads the item.
func (c *Core) Acquire(key ddb.Item, t Acquire) *dynamodb.UpdateItemInput {
	values := t.values()
	s := c.lock.of(t)
	if t.Watched != nil {
		return c.takeOverWatched(t, key, values)
	}
	values[":expired"] = zero
	if !t.Clockless {
		values[":expired"] = ddb.Number(ddb.Seconds(t.Now.Add(-t.Skew)))
	}
	ours(values)
	if s != &c.lock.acquire {
		values[":true"] = mark
	}
	c.typed(values)
	in := c.request(s, key, values)
	if t.Claim != nil {
		t.Claim.on(in)
	}
	return in
}

// ours adds what the conditions on the library's own attributes ask for.
func ours(values ddb.Item) {
	values[":zero"], values[":most"], values[":S"], values[":B"] = zero, most, typeS, typeB
}

// takeOverWatched replaces the test of the clock by "exactly as watched": whoever
// watched has judged the item.
func (c *Core) takeOverWatched(t Acquire, key, values ddb.Item) *dynamodb.UpdateItemInput {
	s, watched := &c.lock.watched, t.Watched
	if t.Lease == 0 {
		s = &c.lock.watchedClosed
	}
	in := c.request(s, key, values)
	cond := "attribute_exists(#pk)"
	for _, a := range []struct{ name, value, attr string }{
		{"#lockedBy", ":seenBy", c.Attr.LockedBy},
		{"#lockTime", ":seenTime", c.Attr.LockTime},
		{"#lockHeld", ":seenHeld", c.Attr.LockHeld},
	} {
		if v, ok := watched[a.attr]; ok {
			cond += " AND " + a.name + " = " + a.value
			values[a.value] = v
		} else {
			cond += " AND attribute_not_exists(" + a.name + ")"
		}
	}
	in.ConditionExpression = &cond
	return in
}
