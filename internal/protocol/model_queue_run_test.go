package protocol

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/search"
)

// queueRuns are the searches of the protocol as it is, each wide in one way.
func queueRuns() map[string]queueRules {
	runs := map[string]queueRules{
		"nothing goes wrong": {members: 3, turns: 2, noTime: true, quick: true},
		"time":               {members: 2, turns: 1},
		"time, no clock":     {members: 2, turns: 1, clockless: true},
		"time for three":     {members: 3, turns: 1, quick: true},
		"deaths":             {members: 2, turns: 2, deaths: 1, quick: true},
		"lost answers":       {members: 2, turns: 1, losses: 2, quick: true},
		"late copies":        {members: 2, turns: 1, copies: 2, losses: 1, quick: true},
		"writes sent twice":  {members: 2, turns: 1, hedges: 2, losses: 1, quick: true},
		"and claims":         {members: 2, turns: 1, hedges: 1, copies: 1},
		"leaving":            {members: 2, turns: 1, leaves: 1, losses: 1},
		"a break":            {members: 2, turns: 1, breaks: 1, losses: 1},
		"two looks":          {members: 2, turns: 1, looks: true, deaths: 1},
		"looks, no clock":    {members: 2, turns: 1, looks: true, losses: 1, clockless: true},
		"a stranger":         {members: 2, turns: 1, alien: 1, losses: 1, quick: true},
		"alike":              {members: 2, turns: 2, losses: 1, quick: true, alike: true},
		"alike, leaving":     {members: 2, turns: 2, leaves: 1, losses: 1, quick: true, alike: true},
		"alike, three":       {members: 3, turns: 2, quick: true, noTime: true, alike: true},
		"alike, and time":    {members: 3, turns: 1, twice: true, quick: true, alike: true},

		"closed, nothing goes wrong": {members: 3, turns: 2, noTime: true, quick: true, closed: true},
		"closed, time":               {members: 2, turns: 2, closed: true},
		"closed, deaths":             {members: 3, turns: 1, deaths: 1, quick: true, closed: true},
		"closed, deaths and answers": {members: 2, turns: 1, deaths: 1, losses: 1, closed: true},
		"closed, lost answers":       {members: 2, turns: 2, losses: 2, quick: true, closed: true},
		"closed, late copies":        {members: 2, turns: 1, copies: 1, losses: 1, quick: true, closed: true},
		"closed, leaving":            {members: 2, turns: 1, leaves: 1, losses: 1, closed: true},
		"closed, a break":            {members: 2, turns: 1, breaks: 1, losses: 1, deaths: 1, quick: true, closed: true},
		"closed, a stranger":         {members: 2, turns: 1, alien: 1, losses: 1, quick: true, closed: true},
		"closed, no clock":           {members: 2, turns: 1, deaths: 1, clockless: true, closed: true},
	}
	if quick() {
		delete(runs, "late copies")
		delete(runs, "time for three")
		delete(runs, "looks, no clock")
		delete(runs, "alike, leaving")
		delete(runs, "alike, and time")
	}
	if !soak() {
		return runs
	}
	maps.Copy(runs, map[string]queueRules{
		"looks, any order":      {members: 2, turns: 2, looks: true, anyOrder: true}, // to believe an old answer costs time, and no verdict
		"time, again":           {members: 2, turns: 2},
		"time, again, no clock": {members: 2, turns: 2, clockless: true},
		"time for all three":    {members: 3, turns: 1, clockless: true},
		"two looks, again":      {members: 2, turns: 2, looks: true},
		"deaths of two":         {members: 3, turns: 1, deaths: 2, quick: true},
		"answers of three":      {members: 3, turns: 1, losses: 1, quick: true},
		"answers, again":        {members: 2, turns: 2, losses: 2, quick: true},
		"copies of three":       {members: 3, turns: 1, copies: 1, quick: true},
		"copies and time":       {members: 2, turns: 1, copies: 2, losses: 1},
		"leaving of one":        {members: 3, turns: 1, leaves: 1, losses: 1, quick: true},
		"break and three":       {members: 3, turns: 1, breaks: 1, quick: true},
		"stranger and three":    {members: 3, turns: 1, alien: 1, quick: true},
		"all at once":           {members: 2, turns: 1, copies: 1, deaths: 1, leaves: 1, alien: 1, quick: true},
	})
	return runs
}

func runQueue(r queueRules) (searched, *queueModel) {
	m := &queueModel{queueRules: r, given: verdicts{}}
	return search.Actors([]queueWorld{m.start()}, m.next), m
}

func TestModelQueue(t *testing.T) {
	states := 0
	for _, name := range slices.Sorted(maps.Keys(queueRuns())) {
		f, m := runQueue(queueRuns()[name])
		if f.Wrong != "" {
			t.Errorf("%s: %v", name, f)
		}
		t.Logf("%s: %d states; verdicts given: %v; ends that met somebody new without any fault: %d", name, f.States, m.given, m.wasted)
		states += f.States
	}
	t.Logf("%d states in all", states)
}

// TestModelQueueServesAll: from every state there is a way, without a further
// fault, to the end of everybody who is alive.
func TestModelQueueServesAll(t *testing.T) {
	members := 3
	if quick() {
		members = 2
	}
	for name, r := range map[string]queueRules{
		"deaths":  {members: members, turns: 1, deaths: 1, quick: true},
		"leaving": {members: 2, turns: 1, leaves: 1, losses: 1, quick: true},
		"copies":  {members: 2, turns: 1, copies: 1, losses: 1, quick: true},
		"break":   {members: 2, turns: 1, breaks: 1, deaths: 1, quick: true},

		"closed, leaving": {members: 2, turns: 1, leaves: 1, losses: 1, quick: true, closed: true}, // a dead holder stops them, as it should
	} {
		states, stuck := stuckQueue(r)
		t.Logf("%s: %d states", name, states)
		if stuck != nil {
			t.Errorf("%s: nobody can go on in %+v", name, *stuck)
		}
	}
}

// stuckQueue finds a state from which no way leads to the end.
func stuckQueue(r queueRules) (int, *queueWorld) {
	m := &queueModel{queueRules: r, given: verdicts{}}
	start := m.start()
	ids := map[queueWorld]int32{start: 0}
	all := []queueWorld{start}
	var back [][]int32 // states from which a state is reached
	back = append(back, nil)
	for at := 0; at < len(all); at++ {
		m.next(all[at], func(who, _ string, to queueWorld, _ string) {
			id, ok := ids[to]
			if !ok {
				id = int32(len(all))
				ids[to] = id
				all = append(all, to)
				back = append(back, nil)
			}
			if !strings.HasPrefix(who, fault) {
				back[id] = append(back[id], int32(at))
			}
		})
	}
	fine := make([]bool, len(all))
	var queue []int32
	for id := range all {
		w := &all[id]
		if !slices.ContainsFunc(w.who[:], func(q queuer) bool { return q.live() }) {
			fine[id] = true
			queue = append(queue, int32(id))
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, from := range back[id] {
			if !fine[from] {
				fine[from] = true
				queue = append(queue, from)
			}
		}
	}
	for id, ok := range fine {
		if !ok {
			return len(all), &all[id]
		}
	}
	return len(all), nil
}

// TestModelQueueMutants leaves out one rule at a time.
func TestModelQueueMutants(t *testing.T) {
	for _, m := range []struct {
		name   string
		bounds queueRules
	}{
		{"a draw that is repeated draws again", queueRules{members: 3, turns: 1, losses: 1, quick: true, drawAgain: true}},
		{"a draw does not ask who stands in the queue", queueRules{members: 2, turns: 2, alike: true, quick: true, drawAgain: true}},
		{"a draw does not ask who has the lock", queueRules{members: 2, turns: 2, alike: true, quick: true, drawHeld: true}},
		{"who finds its entry there believes that it is its own", queueRules{members: 2, turns: 2, alike: true, quick: true, believesThere: true}},
		{"who finds it there by a look beside its draw believes that it is its own", queueRules{members: 3, turns: 1, twice: true, losses: 1, alike: true, quick: true, noTime: true, believesLate: true}},
		{"who was passed over trusts an entry with the same bytes", queueRules{members: 3, turns: 1, twice: true, alike: true, quick: true, trusts: true}},
		{"the refusal of a write that was sent twice is taken for that of one", queueRules{members: 2, turns: 1, hedges: 1, losses: 1, copies: 1, hedgeClean: true}},
		{"leaving moves the places of those behind", queueRules{members: 2, turns: 1, copies: 2, alien: 1, leaves: 1, quick: true, leaveMoves: true}},
		{"leaving a place without a look at who stands there", queueRules{members: 3, turns: 2, leaves: 1, quick: true, noTime: true, leaveAny: true}},
		{"handing over without a look at the entry", queueRules{members: 2, turns: 1, leaves: 1, quick: true, handBlind: true}},
		{"freeing without a look at lockToken", queueRules{members: 2, turns: 1, quick: true, freeBlind: true}},
		{"taking over whatever is there", queueRules{members: 3, turns: 1, passBlind: true, quick: true, deaths: 1}},
		{"leaving without a look at what was handed over", queueRules{members: 2, turns: 1, leaves: 1, quick: true, leaveBlind: true}},
		{"the deadline counts from the look that showed the lock", queueRules{members: 2, turns: 2, clockless: true, fromSeen: true}},
		{"Own without lockHeld, and freeing without a look at lockToken", queueRules{members: 1, turns: 1, copies: 1, losses: 2, ownWithoutHeld: true, freeBlind: true}},
		{"the deadline counts from the last look that was sent, whatever it shows", queueRules{members: 2, turns: 2, looks: true, clockless: true, fromSent: true}},
		{"taking over leaves lockStolen as it was", queueRules{members: 2, turns: 1, losses: 1, silentPass: true}},
		{"the deadline of a hold that was handed over ignores lockTime", queueRules{members: 2, turns: 2, copies: 1, noClock: true, quick: true}},
		{"the token is the ticket", queueRules{members: 3, turns: 1, deaths: 1, ticketToken: true}},
		{"a claim leaves lockTime as it was", queueRules{members: 2, turns: 2, silentClaim: true, clockless: true}},
		{"the watch begins when the look was asked for", queueRules{members: 2, turns: 2, clockless: true, earlyWatch: true}},
		{"taking over leaves the entries of those ahead", queueRules{members: 3, turns: 1, deaths: 1, quick: true, leaveAhead: true}},
		{"taking over before the hold is dead", queueRules{members: 2, turns: 2, clockless: true, hasty: true}},
		{"a draw takes the lock under the last token", queueRules{members: 1, turns: 2, alien: 1, numbersAsLast: true}},
		{"a lock that never ends is used before it is confirmed", queueRules{members: 3, turns: 1, deaths: 1, quick: true, closed: true, unsettled: true}},
		{"a lock is confirmed without a look at who has it", queueRules{members: 3, turns: 1, quick: true, closed: true, settleBlind: true}},
		{"a row is deleted without a look at lockToken", queueRules{members: 2, turns: 1, quick: true, closed: true, freeBlind: true}},
		{"leaving a lock that never ends", queueRules{members: 2, turns: 1, leaves: 1, quick: true, closed: true, leaveBlind: true}},
	} {
		if m.bounds.leaveMoves && quick() {
			continue // found within 1,300,000 states
		}
		f, _ := runQueue(m.bounds)
		f.MustFind(t, m.name)
	}
}

// TestModelQueueClaimGivenUp: who gives up a claim without an answer, and does not ask
// whether it has landed, leaves a lock that nobody ends.
func TestModelQueueClaimGivenUp(t *testing.T) {
	r := queueRules{members: 2, turns: 2, losses: 1, quick: true, closed: true}
	if states, stuck := stuckQueue(r); stuck != nil {
		t.Errorf("%d states: nobody can go on in %+v", states, *stuck)
	}
	r.releaseOnce = true
	if states, stuck := stuckQueue(r); stuck == nil {
		t.Errorf("nobody is stuck: %d states", states)
	}
}

// TestModelQueueServesThoseWhoWerePassedOver: who does not draw again when its
// entry is gone is never served.
func TestModelQueueServesThoseWhoWerePassedOver(t *testing.T) {
	r := queueRules{members: 2, turns: 2, quick: true}
	if states, stuck := stuckQueue(r); stuck != nil {
		t.Errorf("%d states: nobody can go on in %+v", states, *stuck)
	}
	r.stayPut = true
	if states, stuck := stuckQueue(r); stuck == nil {
		t.Errorf("who stays put is served all the same: %d states", states)
	}
}
