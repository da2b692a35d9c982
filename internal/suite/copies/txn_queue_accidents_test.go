package copies_test

import (
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
)

// reply is what the caller sees; zero: as if nothing had been.
type reply struct {
	err   error
	code  string // of a refusal
	again bool   // the answer to a copy
}

// mishap is what befalls one write of a transaction that stands in a queue, whatever that
// write is: one that enters it, confirms or renews the turn, commits, or leaves.
type mishap struct {
	name string
	// act is the network at the write; then, if set, is the network from then on.
	act  func(w *queueCell, one *fault.Copy) reply
	then func(w *queueCell, one *fault.Copy) reply
	// after comes when the call has ended.
	after func(w *queueCell, one *fault.Copy)
	// inside comes in the closure, in the call's turn, and not at a write.
	inside func(w *queueCell)
	dies   bool // nobody is told anything
	fails  bool // it may be that nothing is written
	breaks bool // a turn is lost, and the call takes another
}

func passes(*queueCell, *fault.Copy) reply { return reply{} }
func cut(*queueCell, *fault.Copy) reply    { return reply{err: errCutOff} }

var errCutOff = errors.New("connection reset")

func appliedAnd(then func(w *queueCell, one *fault.Copy) reply) func(*queueCell, *fault.Copy) reply {
	return func(w *queueCell, one *fault.Copy) reply {
		w.deliver(one)
		return then(w, one)
	}
}

func met(code string) func(*queueCell, *fault.Copy) reply {
	return func(w *queueCell, one *fault.Copy) reply {
		if !fault.Writes(one) {
			return reply{}
		}
		return reply{code: code}
	}
}

func leaves(then func(w *queueCell, one *fault.Copy) reply) func(*queueCell, *fault.Copy) reply {
	return func(w *queueCell, one *fault.Copy) reply {
		defer w.leave()
		return then(w, one)
	}
}

func mishaps() []mishap {
	late := func(w *queueCell, one *fault.Copy) { w.deliver(one) }
	once := func(w *queueCell, one *fault.Copy) reply { // with the next write
		if fault.Writes(one) && !w.delivered.Swap(true) {
			w.deliver(w.hit)
		}
		return reply{}
	}
	return []mishap{
		{name: "its answer is lost", act: appliedAnd(cut)},
		{name: "it is lost", act: cut},
		{name: "twice, the second answer seen", act: func(w *queueCell, one *fault.Copy) reply {
			w.deliver(one)
			return reply{again: true}
		}},
		{name: "lost, and late, before the next", act: cut, then: once},
		{name: "again, before the next", act: passes, then: once},
		{name: "again, behind the call", act: passes, after: late},
		{name: "again, behind the call and ten writes of others", act: passes, after: func(w *queueCell, one *fault.Copy) {
			w.others(10)
			w.deliver(one)
		}},
		{name: "again, when its lease is over", act: passes, after: func(w *queueCell, one *fault.Copy) {
			time.Sleep(turnLease)
			w.deliver(one)
		}},
		{name: "again, under another token", act: passes, after: func(w *queueCell, one *fault.Copy) {
			lapse(one)
			w.deliver(one)
		}},
		{name: "denied from then on", act: met("AccessDeniedException"), then: met("AccessDeniedException"), fails: true},
		{name: "applied, and denied from then on", act: appliedAnd(met("AccessDeniedException")), then: met("AccessDeniedException"), fails: true},
		{name: "throttled from then on", act: met("ThrottlingException"), then: met("ThrottlingException"), fails: true},
		{name: "applied, and throttled from then on", act: appliedAnd(met("ThrottlingException")), then: met("ThrottlingException"), fails: true},
		{name: "its hold is broken before it", act: func(w *queueCell, _ *fault.Copy) reply {
			w.breakTurns()
			return reply{}
		}, breaks: true},
		{name: "a turn is broken inside the closure", inside: (*queueCell).breakTurns, breaks: true},
		{name: "a turn runs out inside the closure", breaks: true, inside: func(w *queueCell) {
			w.silent.Store(true)
			time.Sleep(2 * turnLease)
			w.silent.Store(false)
		}},
		{name: "the caller leaves", act: leaves(passes), fails: true},
		{name: "its answer is lost, and the caller leaves", act: leaves(appliedAnd(cut)), fails: true},
		{name: "it is lost, and the caller leaves", act: leaves(cut), fails: true},
		{name: "its answer is lost, and the process dies", act: leaves(appliedAnd(cut)), then: cut, dies: true},
		{name: "the process dies before it", act: leaves(cut), then: cut, dies: true},
	}
}
