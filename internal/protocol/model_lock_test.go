package protocol

import (
	"time"

	"github.com/dynahold/dynahold/internal/stored"
)

// The item lock, seen from the service: the item, and what each request does
// to it under which condition.

// token is a fencing token: lives of the item are tokensPerLife apart here and
// a second of microseconds apart on the wire.
type token int16

const (
	tokensPerLife = 64
	lifeApart     = 1_000_000
)

func (t token) wire() int64 {
	if t < 0 {
		return int64(t)
	}
	return int64(t/tokensPerLife)*lifeApart + int64(t%tokensPerLife)
}

const (
	maxAcquirers = 3
	ticks        = 3                // moments of the clock: 0, 1, 2
	lease        = 1                // in ticks
	byHand       = maxAcquirers + 1 // someone who follows the article by hand: lockedBy and lockTime only
)

// lockItem is the item; numbers are 0 where the attribute is absent.
type lockItem struct {
	exists, stub bool
	by           int8  // lockedBy: acquirer i is i+1
	time         int8  // lockTime
	held, token  token // token: the next one
	stolen       token // -1 where absent
	try          int8  // part of lockedBy: every attempt of an acquire has its own id
	life         int8  // how often the item has come into being; no attribute
	marked       bool  // the id of the operator's break is in the ring of writers
}

// lock is the item as the library parses it.
func (it lockItem) lock() stored.Record {
	// Who locks by hand names no lease, but leaves the one that it finds.
	return stored.Record{By: wireIDs[it.by], Timed: it.time != 0, Lease: time.Second, Held: it.held.wire(), Token: it.token.wire(), Stolen: it.stolen.wire(), Stub: it.stub}
}

// wireIDs are what lockedBy says; who locks by hand has no random part.
var wireIDs = [...]string{"", stored.NewID("A"), stored.NewID("B"), stored.NewID("C"), "hand"}

var ids = [...]string{"", "A", "B", "C", "hand"}

// lockWorld is a state of everything.
type lockWorld struct {
	item   lockItem
	now    int8
	breaks int8 // breaks by an operator that are still to come, at most
	who    [maxAcquirers]acquirer
	op     operator // whose own verdict is checked
}

// lockRules are the bounds of a search, and the rules that a mutant breaks.
type lockRules struct {
	acquirers   int
	ticks       int8 // moments of the clock: 0, 1, 2
	takes       int8 // attempts of an acquire
	tries       int8 // attempts of the write that ends the hold
	takeCopies  int8 // late copies of an acquirer's acquire that may be on the way at once
	copies      int8 // late copies of the write that ends the hold
	breaks      int8 // by an operator
	lives       int8
	ops         []op
	start       []lockItem
	upsert      bool // acquirers also lock a key without an item
	extend      bool
	operates    bool // an operator breaks a hold, by requests that can be lost
	byHand      bool // somebody follows the article by hand
	lateCommit  bool // Config.LateCommit
	wildClocks  bool // takeovers and breaks at any time, whatever lockTime says
	lateExtend  bool // an extension may be on the way while the hold is ended
	onceEach    bool // an attempt that was delivered leaves no copy: late ones are attempts without an answer
	resent      bool // what is delivered was delivered before, unseen by its sender, who gets the second answer
	floorOnWire bool // a new life's first token is the time when its acquire was sent, as it really is

	// Mutants.
	ownWithoutHeld, ownWithoutID, noOwn bool
	silentTakeover, silentBreak         bool
	oneID                               bool // all attempts of an acquisition have the same bytes, or at least one id
	stolenAtZero                        bool // the first lock of a life sets lockStolen to 0, not to its floor
	freshNow                            bool // every attempt of a commit carries its own :now
	resetToken                          bool // a new life starts at token 1
	blindExtend                         bool // an extension may also move lockTime back
	writerIgnoresLock                   bool
	judge                               func(l stored.Record, r ruling) Verdict
	judgeBreak                          func(l, seen stored.Record, marked Verdict, exists, clean bool) Verdict
}

// ruling is what a verdict is asked for.
type ruling struct {
	op                   op
	removes              bool // the write deletes the item
	id                   string
	token                int64
	exists, clean, valid bool
}

// take applies an acquire, or the making of a stub.
func (w *lockWorld) take(r *lockRules, i int, req copies) bool {
	it, sent, stub := &w.item, req.at, req.stub
	switch {
	case stub && it.exists:
		return false
	case !stub && (!it.exists || it.stub && !r.upsert):
		return false
	case it.time != 0 && it.time > sent && !r.wildClocks:
		return false
	}
	w.force()
	w.ended(it.by)
	if stub {
		*it = lockItem{exists: true, stub: true, life: it.life + 1, stolen: -1}
	}
	floor := token(it.life) * tokensPerLife
	switch {
	case r.floorOnWire: // acquirers are a few microseconds apart
		floor = (1+token(sent))*tokensPerLife + 24*token(i) + 8*token(req.try)
	case r.resetToken:
		floor = 0
	}
	switch {
	case it.held != 0 && !r.silentTakeover:
		it.stolen = it.held
	case it.stolen < 0 && r.stolenAtZero:
		it.stolen = 0
	case it.stolen < 0:
		it.stolen = floor - 1
	}
	if it.token == 0 {
		it.token = floor
	}
	it.held, it.by, it.time = it.token, int8(i+1), sent+lease
	it.token++ // the next one
	it.try = req.try
	return true
}

// own is the condition of everything that a holder writes.
func (w *lockWorld) own(r *lockRules, i int) bool {
	return (r.ownWithoutID || w.item.by == int8(i+1) && w.item.try == w.who[i].try) && (r.ownWithoutHeld || w.item.held == w.who[i].token)
}

// end applies the write that ends the hold of i: commit, delete or release.
// The second result is the promise that this breaks.
func (w *lockWorld) end(r *lockRules, i int, now int8) (applied bool, wrong string) {
	it, a := &w.item, &w.who[i]
	may := w.own(r, i) || r.noOwn && it.exists
	inTime := r.lateCommit || a.op == release || it.time > now
	switch {
	case !may || !inTime:
		return false, ""
	case a.removes() && a.op == release && !it.stub:
		return false, ""
	case a.applied:
		return true, "a write is applied twice"
	case a.verdict == Lost || a.verdict == Expired:
		return true, "a write is applied after its verdict said that it never would be"
	case a.op != release && a.stale:
		return true, "a write is applied after others ended its hold: it is based on an old read"
	}
	a.applied = true
	if a.removes() {
		w.vanish()
		return true, ""
	}
	if a.op == commit {
		it.stub = false
	}
	w.free()
	return true, ""
}

// stretch applies an extension.
func (w *lockWorld) stretch(r *lockRules, i int, until int8) bool {
	if !w.own(r, i) || w.item.time >= until && !r.blindExtend {
		return false
	}
	w.item.time = until
	return true
}

// break_ ends whatever hold there is, by force.
func (w *lockWorld) break_(r *lockRules) {
	if w.item.held != 0 && !r.silentBreak {
		w.item.stolen = w.item.held
	}
	w.force()
	w.free()
}

// free removes what names a holder.
func (w *lockWorld) free() {
	w.ended(w.item.by)
	w.item.by, w.item.time, w.item.held, w.item.try = 0, 0, 0, 0
}

// vanish deletes the item.
func (w *lockWorld) vanish() {
	for i := range w.who {
		w.who[i].over = w.who[i].phase > taking
		w.ended(int8(i + 1))
	}
	w.item = lockItem{life: w.item.life, stolen: -1}
}

// ended notes that whoever is named in lockedBy must not write any more.
func (w *lockWorld) ended(by int8) {
	if by > 0 && by <= maxAcquirers && w.who[by-1].phase > taking && (w.who[by-1].token == w.item.held) {
		w.who[by-1].stale = true
	}
}
