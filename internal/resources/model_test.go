package resources_test

import (
	"fmt"
	"strings"
)

// The promises, as they break.
const (
	overTheLimit = "more is started than the limit"
	twoAtOnce    = "more work at once than the limit"
	twoOnOne     = "two work on one job"
	jobGone      = "a job is worked on that others took for dead"
	inPause      = "a permit is given out while the resource is paused"
	permitGone   = "a permit is used that others took for dead"
	notCounted   = "counters are not those of the rows"
	lostJob      = "a job is lost that was acknowledged"
	others       = "a job is ended that others work on"
	comesBack    = "a job comes back that was done"
	isTwice      = "a job is in the table twice"
	appliedTwice = "a transaction is applied twice"
	tokenTwice   = "a token is given out twice"
	oldToken     = "somebody begins to work under a token that is not the greatest"
	falseLoss    = "told lost, and it has not"
	falseSuccess = "told success, and it has not"
	unworked     = "a job is given up that nobody has worked on"
)

// Bounds of a world.
const (
	maxJobs  = 2
	maxHands = 3
	maxLate  = 2 // requests of one hand that may be on the way late
	attempts = 2 // Config.Retry.Attempts
)

// Where a job is. Its row and its dead letter are one here; that they never
// are two is one of the promises.
const (
	nowhere int8 = iota
	inLine       // queued
	atWork       // running
	buried       // in the dead letters
)

// modelJob is a job's row.
type modelJob struct {
	at       int8
	place    int8 // sort key: the place in line, last known also of a dead letter
	attempts int8
	token    int8 // of the last start at this place, also after Return
	until    int8

	// Of its producer.
	enq     int8 // 0: not sent; 1: sent, without an answer; 2: over; 3: enqueued once more
	copy    bool // a late Enqueue is on the way
	applied bool
	acked   bool // told success
	marker  bool // its id has a row of its own, which stays after its end

	// Not in the table.
	over   bool // done or discarded
	worked bool // somebody has had it within a lease; kept for rules.unworked only
}

type kind int8

const (
	none kind = iota
	start
	takeover
	done
	fail
	returnJob // Return
	bury
	requeue
	discard
	cancel
	breakJob
	renew
	take // Acquire; UpdateItems from here on
	release
	sweep
	extend // renewal of a permit
	draw   // the token of a permit that was found, and its next end
	pass   // a Release that passes the permit on
	breakPermit
	kindCount
)

// transacted requests carry a ClientRequestToken.
func (k kind) transacted() bool { return k < renew }
func (k kind) draws() bool      { return k == take || k == draw || k == pass }
func (k kind) ends() bool       { return k == done || k == fail || k == returnJob }

var kindNames = [...]string{"", "start", "takeover", "Done", "Fail", "Return", "bury", "Requeue", "Discard", "Cancel", "BreakJob", "renewal", "Acquire", "Release", "sweep", "renewal", "fence", "passing on", "BreakPermit"}

// request is what is in one: what its sender has seen, and what it writes.
type request struct {
	kind     kind
	of       int8 // the job, or whose permit
	at       int8 // as it was seen
	place    int8
	attempts int8
	token    int8
	until    int8
	resource int8 // one less than the token that it gives out: that of the resource as it was seen, or more
	ends     int8 // until that it writes
	to       int8 // one more than the hand to which a permit is passed on; 0: none
	try      int8 // a call that was given up is not the next one
	applied  bool // it was; kept where the service does not remember
}

// Phases of a hand.
const (
	idle    int8 = iota
	calling      // sent, without an answer; or to be sent, if not in doubt
	working
	waiting // Acquire, between tries, or in line
	owes    // split: the second request is to be sent
)

// hand is a process: a dispatcher and its handler, one that wants a permit, an
// operator. One that dies is followed by a new one; what it sent stays.
type hand struct {
	phase    int8
	call     request
	sent     int8
	doubt    bool // an attempt of the call has no answer
	applied  bool // the call was
	job      int8 // that it holds
	onPermit bool // what it holds is its permit
	token    int8
	attempts int8
	place    int8
	deadline int8
	late     [maxLate]request

	permit   int8 // attribute p_<id> of the resource: until when; 0 if absent
	acquired bool // its one id is used up
	unsure   bool // by more than one try, of which an earlier one may have been applied
	evicted  bool // the permit that it had last was broken
}

// world is a state of everything, for one resource.
type world struct {
	now int8

	queued, running, dead, token int8 // of the resource
	swept                        int8 // of the resource: whose permits were removed as those of the dead
	brokenJobs, brokenPermits    int8 // of the resource: tokens, and whose permits, that were ended by force
	evicted                      int8 // tokens of jobs that were ended by force, whatever the evidence
	breaks                       int8 // by operators that are still to come
	cut                          int8 // by how much the limit was lowered
	paused                       bool

	top      int8 // greatest token that somebody has worked under
	operator int8 // Requeues and Discards that are still to come
	jobs     [maxJobs]modelJob
	hands    [maxHands]hand
}

// rules are the bounds of a search, and the rules that a mutant breaks.
type rules struct {
	jobs, hands  int
	limit        int8
	ticks, lease int8 // moments of the clock
	tokens       int8 // that a resource may give out
	late         int  // late requests of one hand
	operator     int8
	enqueue      bool // the jobs are enqueued; else they are in line from the start
	permits      int  // hands that want a permit
	renewals     bool
	breaks       int8 // Break and Cancel by operators
	fails        bool // Fail and Return, beside Done
	noDone       bool
	forgetful    bool // the service does not remember ClientRequestTokens
	waits        bool // Acquire tries again later
	process      int  // hands of one process, which pass permits on to each other
	operates     bool // an operator lowers the limit, or pauses the resource
	repeats      bool // the producer enqueues an id once more, whatever it was told
	marked       bool // ids have rows of their own
	leaps        bool // tokens may leave some out, as those of a clock do
	conflicts    bool // a start is sent again after conflicts with other transactions

	unworked bool // also promised: nothing is buried that nobody has worked on

	// Mutants.
	noLimit, unseen, noOwn, takeoverCounts, failKeepsRunning, split, blindSweep, blindRelease,
	noLease, buryNotDead, doneKeepsRunning, returnNotQueued, sameToken,
	hastyLost, hopeful, noDeadline,
	cleanLost, // one that only was sent once and finds nothing to end was lost
	anyEvidence, // that a permit was removed is believed also where it was taken twice
	anyToken, // a start does not ask for the resource's token
	fromLastTry, // a permit that an earlier try took keeps its end; the deadline is of the later try
	fromLastStart, // the deadline of a start after conflicts counts from its last request
	blindDraw, // a fence may move the end back
	noEvidence, // what is ended by force leaves no trace
	blindBreak, // a job is broken whatever its token is
	anyCancel, // a job is cancelled whatever it does
	passAtAnyLimit, passInPause, passOldToken, passOfNothing, passOntoPermit,
	passFromAnswer, // the deadline of who is passed a permit counts from the answer
	passBelieved, // no answer is taken for a permit
	passForgotten, // who may have been passed a permit takes one as if it had not
	passSure, // who is passed a permit that was taken twice believes all evidence
	passToUnsure bool // who may have taken a permit is passed one
}

// sight is something that a model should come to.
type sight int

const (
	sawDone sight = iota
	sawFail
	sawReturn
	sawLost
	sawUnknown
	sawBesides // told success by the deadline, not by an answer
	sawTakeover
	sawBury
	sawRequeue
	sawDiscard
	sawFound // a start or a permit of an earlier attempt
	sawBusy
	sawPermit
	sawRelease
	sawSweep
	sawRenewal
	sawResent
	sawAgain
	sawBreak
	sawCancel
	sawLateEnd // Done after the deadline, and in time
	sawPassed
	sawNotPassed // and given back
	sawLeft      // by whom it was passed on to
	sightCount
)

var sightNames = [sightCount]string{"done", "failed", "returned", "lost", "unknown", "success by deadline", "takeover", "buried", "requeued",
	"discarded", "found started", "busy", "permit", "released", "swept", "renewed", "resent", "enqueued again", "broken", "cancelled", "late end", "passed on", "not passed on", "left while it is passed on"}

type sights [sightCount]int

func (s sights) String() string {
	var out []string
	for i, n := range s {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s %d", sightNames[i], n))
		}
	}
	return strings.Join(out, ", ")
}

// model is a search under way.
type model struct {
	rules
	seen sights
}

func (m *model) begin() (w world) {
	w.operator, w.breaks = m.operator, m.breaks
	for j := range m.jobs {
		if !m.enqueue {
			w.jobs[j] = modelJob{at: inLine, enq: 2, acked: true}
			w.queued++
		}
	}
	for j := m.jobs; j < maxJobs; j++ {
		w.jobs[j].enq = 2
	}
	return w
}

// check is the promise that a state breaks.
func (m *model) check(w *world) string {
	var queued, running, dead, held int8
	owing := false
	for n := range m.jobs {
		j := &w.jobs[n]
		switch j.at {
		case inLine:
			queued++
		case atWork:
			running++
		case buried:
			dead++
		}
		switch {
		case j.acked && !j.over && j.at == nowhere:
			return lostJob
		case j.over && j.at != nowhere:
			return comesBack
		}
	}
	gone := ""
	for i := range m.hands {
		h := &w.hands[i]
		if h.permit != 0 {
			running++
		}
		owing = owing || h.phase == owes || h.phase == calling && m.split
		if !h.within(w) {
			continue
		}
		held++
		switch j := &w.jobs[h.job]; {
		case h.onPermit && h.permit == 0:
			gone = permitGone
		case !h.onPermit && (j.at != atWork || j.token != h.token):
			gone = jobGone
		}
		for k := range i {
			if o := &w.hands[k]; o.within(w) && !o.onPermit && !h.onPermit && o.job == h.job {
				return twoOnOne
			}
		}
	}
	switch {
	case running > m.limit:
		return overTheLimit
	case held > m.limit:
		return twoAtOnce
	case !owing && (queued != w.queued || running != w.running || dead != w.dead):
		return notCounted
	}
	return gone
}

// within reports whether a hand works, and within its lease.
// What was broken does not count: it learns that from its next renewal, and until then
// it has the smaller token.
func (h *hand) within(w *world) bool {
	switch {
	case w.now >= h.deadline:
		return false
	case h.broken(w):
		return false
	case h.phase == calling:
		return h.call.kind == renew || h.call.kind == extend
	}
	return h.phase == working
}

// broken reports whether what a hand holds was ended by force.
func (h *hand) broken(w *world) bool {
	if h.onPermit {
		return h.evicted
	}
	return w.evicted&(1<<h.token) != 0
}
