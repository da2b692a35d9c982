package lockless

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Transactions over several items, seen from the service: what the items are,
// and what one request does to all of them or to none. Taking a lock is one safe
// step here; the search of the lock walks through what can befall it.

const (
	maxItems  = 3
	maxActors = 3
	maxRuns   = 2 // runs of one closure, each with an id of its own
)

// part is how a transaction takes part in an item.
type part int8

const (
	untouched  part = iota
	checked         // read, and not changed
	changed         // read, and changed
	removed         // read, and deleted
	locked          // locked, and changed
	lockedOnly      // locked, and not changed
	lockedGone      // locked, and deleted
	event           // changed without having been read
	required        // not read: a lock that is held already, by a handle, must still be
)

func (p part) held() bool   { return p >= locked && p <= lockedGone }
func (p part) writes() bool { return p == changed || p == locked || p == event }

// jointItem is one item.
type jointItem struct {
	exists              bool
	by                  int8 // transaction i is i+1
	held, token, stolen int8 // as in the library; token is 0 in an item that was never locked
	ring                ids8
	last                int8 // the write that made it what it is; no attribute
	remembers           bool // the operation id under which all transactions of a search run
}

const (
	byProgram = maxActors + 1 // a lock of somebody else, with the library
	byArticle = maxActors + 2 // one by hand
)

// image is the item as the library reads it.
func (it jointItem) image() ddb.Item {
	if !it.exists {
		return nil
	}
	item := ddb.Item{"id": ddb.Text("x")}
	if ring := it.ring.wire(); ring != nil {
		item["writers"] = ddb.Bytes(ring)
	}
	if it.by != 0 {
		item["lockedBy"], item["lockTime"] = ddb.Text(jointIDs[it.by]), ddb.Integer(1_000_000)
	}
	if it.held != 0 {
		item["lockHeld"], item["lockLease"] = ddb.Integer(int64(it.held)), ddb.Integer(30)
	}
	if it.token != 0 {
		item["lockToken"], item["lockStolen"] = ddb.Integer(int64(it.token)), ddb.Integer(int64(it.stolen))
	}
	if it.remembers {
		item["once"], item["onceEpoch"] = &types.AttributeValueMemberBS{Value: [][]byte{jointOperation[:]}}, ddb.Integer(1)
	}
	return item
}

var jointOperation = protocol.NewOnceID("order-7")

var jointIDs = [...]string{"", stored.NewID("A"), stored.NewID("B"), stored.NewID("C"), stored.NewID("D"), "hand"}

var jointCore = protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "t", Classify: func(err error) error { return err }, Partition: "id"}, Attr: stored.Attributes{
	LockedBy: "lockedBy", LockTime: "lockTime", LockLease: "lockLease", LockHeld: "lockHeld", LockToken: "lockToken",
	LockStolen: "lockStolen", LockStub: "lockStub", LockQueue: "lockQueue", Writers: "writers", Tombstone: "tombstone", TTL: "expiresAt", Once: "once"}}))

// jointRun is one run of a closure, and the request that commits it.
type jointRun struct {
	base    [maxItems]jointItem // as read, or as it was right after it was locked
	late    int8                // copies of its request on their way
	applied bool
	lost    bool // its verdict says that it is not applied, and never will be
}

// actor is one call of txn.Run.
type actor struct {
	phase  phase // fresh: reads and locks; ending: has sent; done
	nth    int8  // the present run
	known  int8  // items that it has read or locked, by bits
	tries  int8
	unsure bool
	runs   [maxRuns]jointRun
}

type jointWorld struct {
	items  [maxItems]jointItem
	events int8 // steps of the surroundings that are still to come
	next   int8 // id of their next write
	who    [maxActors]actor
}

// jointRules are the bounds of a search, and the rules that a mutant breaks.
type jointRules struct {
	plans  [][maxItems]part // one for each transaction
	start  []jointItem
	items  int // how many there are
	runs   int8
	tries  int8
	copies int8
	events int8
	breaks bool // others break locks
	hands  bool // others lock by hand
	// forgets: the service does not know a token again, as after ten minutes: a
	// repeated request is judged by its conditions.
	forgets bool
	// resurrect: then, a request that has made an item may do so again after the
	// item was deleted.
	resurrect bool

	// passes: a lock that a transaction ends goes to the next caller of its process.
	passes bool
	// once: all transactions are runs of one operation, under one id.
	once bool
	// keeps: others delete nothing. An item that was deleted remembers no id.
	keeps bool

	// meets: an answer may be that others are at the items, whether the request was applied
	// or was not. twice: a copy of each request may go its own way, although it is answered.
	meets, twice bool

	// Mutants.
	step         func(evidence protocol.Verdict, last bool) Step // after such an answer
	looks        func(...Look) protocol.Verdict
	noLookup     bool // what an item remembers is not looked at when it is read or locked
	blindEvent   bool // a write that has not read the item does not demand that it does not remember the id
	unseenIsLost bool // items that show nothing are evidence
	oneKeeps     bool // only the first item that a transaction writes remembers the id
	noChecks     bool // what is only read is not validated
	noRing       bool
	noToken      bool // As read does not look at lockToken
	noLock       bool // As read does not look at lockedBy
	ownByID      bool // a holder's condition is its id alone, the same in all its runs
	noOwn        bool
	sameToken    bool // who a lock is passed on to has it under the same token
	noRequire    bool // what is required is not compared
	byHolder     bool // it is compared by its holder alone, who may have taken it again
	notAtomic    bool // what fails is left out, the rest is applied
	againInDoub  bool // runs again although the last request may arrive yet
	judgePart    func(p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict
	judgeAll     func(parts []protocol.Verdict, clean bool) protocol.Verdict
	released     func(v protocol.Verdict) protocol.Verdict // of the release after a request without a verdict
}

type jointModel struct {
	jointRules
	given verdicts
}

// id of the nth run of transaction i.
func runID(i int, nth int8) int8 { return int8(10*i) + nth + 1 }

func (m *jointModel) asRead(base, it *jointItem) bool {
	if !base.exists || !it.exists {
		return base.exists == it.exists
	}
	return (m.noRing || base.ring == it.ring) && (m.noToken || base.token == it.token) && (m.noLock || it.by == 0)
}

// fits reports whether the condition on one item holds.
func (m *jointModel) fits(w *jointWorld, i, k int, nth int8) bool {
	it, base := &w.items[k], &w.who[i].runs[nth].base[k]
	switch p := m.plans[i][k]; {
	case p == untouched, p == checked && m.noChecks:
		return true
	case p == required:
		return m.noRequire || it.by == int8(i+1) && (m.byHolder || it.held == base.held)
	case p.held():
		return m.noOwn && it.exists || it.by == int8(i+1) && (m.ownByID || it.held == base.held)
	case p == event:
		return it.by == 0 && (!it.remembers || m.blindEvent)
	}
	return m.asRead(base, it)
}

// execute is the service's work on a request. failed has the items whose
// condition did not hold, by bits; wrong is the promise that is broken.
func (m *jointModel) execute(w *jointWorld, i int, nth int8) (failed int8, wrong string) {
	r := &w.who[i].runs[nth]
	if r.applied && !m.forgets {
		return 0, "" // the token is known: success
	}
	for k := range m.items {
		if made := !r.base[k].exists && m.plans[i][k] == changed && (r.applied || r.lost) && !m.resurrect; made || !m.fits(w, i, k, nth) {
			failed |= 1 << k
		}
	}
	if failed != 0 && !m.notAtomic {
		return failed, ""
	}
	if m.applied(w, i) {
		return 0, "a transaction is applied twice"
	}
	if r.lost {
		return 0, "a transaction is applied after its verdict said that it never would be"
	}
	r.applied = true
	keep := m.once
	for k := range m.items {
		it, base, p := &w.items[k], &r.base[k], m.plans[i][k]
		if p == required && (it.by != int8(i+1) || it.held != base.held) {
			return 0, "a transaction is applied although what it requires is held no longer"
		}
		if p != untouched && p != event && p != required && it.last != base.last {
			return 0, "what a transaction has read is not what is there when it is applied"
		}
		if failed&(1<<k) != 0 {
			return 0, "a part of a transaction is applied"
		}
		id := runID(i, nth)
		switch {
		case p == removed, p == lockedGone:
			*it = jointItem{}
			continue
		case p == event && !it.exists, p == changed && !it.exists:
			*it = jointItem{exists: true, ring: ids8{id}, last: id}
		case p == event:
			it.ring, it.last = ids8{id}, id
		case p.writes():
			it.ring, it.last = it.ring.push(id), id
		}
		if p.writes() {
			it.remembers = it.remembers || keep
			keep = keep && !m.oneKeeps
		}
		if p.held() {
			m.end(it)
		}
	}
	return failed, ""
}

// end ends the lock of an item with the transaction.
func (m *jointModel) end(it *jointItem) {
	if !m.passes {
		it.by, it.held = 0, 0
		return
	}
	it.by = byProgram
	if !m.sameToken {
		it.held = it.token
		it.token++
	}
}

// applied reports whether a run of transaction i is applied; or, under an id, any.
func (m *jointModel) applied(w *jointWorld, i int) bool {
	for j := range m.plans {
		for _, r := range w.who[j].runs {
			if r.applied && (m.once || i == j) {
				return true
			}
		}
	}
	return false
}

// judge is the library's verdict on a request that was refused because of the
// items that failed.
func (m *jointModel) judge(w *jointWorld, i int, failed int8) protocol.Verdict {
	a := &w.who[i]
	r, clean := &a.runs[a.nth], !a.unsure
	var parts []protocol.Verdict
	for k := range m.items {
		if failed&(1<<k) == 0 {
			continue
		}
		plan := m.plans[i][k]
		p := Part{Base: r.base[k].image(), Writes: plan.writes(), Removes: plan == removed || plan == lockedGone}
		if plan.held() {
			p.Hold = m.holder(r, i, k)
		}
		id, image := writeID(runID(i, a.nth)), w.items[k].image()
		if m.judgePart != nil {
			parts = append(parts, m.judgePart(p, id, image, clean))
		} else {
			parts = append(parts, JudgePart(jointCore, p, id, image, clean))
		}
	}
	if m.judgeAll != nil {
		return m.judgeAll(parts, clean)
	}
	v := JudgeParts(parts...)
	for k := range m.items {
		if m.once && v != protocol.Committed && failed&(1<<k) != 0 && Remembers(jointCore, w.items[k].image(), jointOperation) {
			return protocol.Committed // by this run or another
		}
	}
	return v
}

// shown is what the items that a transaction without a verdict would write show of it.
func (m *jointModel) shown(w *jointWorld, i int) protocol.Verdict {
	id := writeID(runID(i, w.who[i].nth))
	for k := range m.items {
		if p := m.plans[i][k]; !p.writes() || p.held() {
			continue
		}
		image := w.items[k].image()
		if protocol.RingVerdict(id, nil, jointCore.Ring(image)) == protocol.Committed || m.once && Remembers(jointCore, image, jointOperation) {
			return protocol.Committed
		}
	}
	if m.unseenIsLost {
		return protocol.Lost
	}
	return protocol.Undecided
}

func (m *jointModel) holder(r *jointRun, i, k int) *protocol.Holder {
	held := int64(r.base[k].held)
	return &protocol.Holder{ID: jointIDs[i+1], Token: held, Seen: held + 1}
}

// lock is an item's lock as the library parses it.
func (it jointItem) lock() stored.Record {
	stolen := int64(it.stolen)
	if it.token == 0 {
		stolen = -1
	}
	return stored.Record{By: jointIDs[it.by], Timed: it.by != 0, Lease: time.Second, Held: int64(it.held), Token: int64(it.token), Stolen: stolen}
}
