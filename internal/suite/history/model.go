package history

import "github.com/anishathalye/porcupine"

// end is an operation of the checker's own. It comes after every return of a
// known outcome and before the return of every unknown one.
const end Kind = -1

// state is the item, and whether the recording is over.
type state struct {
	State
	over bool
}

// model is one item. Unknown outcomes are the reason for end: before it, an
// unknown operation can be placed only where it has an effect, and after it
// only where it has none. So "never took effect" is "placed after the end",
// where nobody looks any more.
//
// The alternative, a nondeterministic model in which every unknown step leads
// to two states, accepts the same histories (a test compares them) and those
// as quickly, but needs a hundred times as long to reject one, often too long:
// it can place each unknown operation everywhere without effect, and tries.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, output any) (bool, any) {
		s, k, r := before.(state), input.(Kind), output.(Result)
		switch {
		case k == end:
			s.over = true
			return true, s
		case s.over:
			return true, s // only unknown ones are left
		}
		next, ok := effect(s.State, k, r)
		return ok, state{State: next}
	},
	DescribeOperation: func(input, output any) string {
		if input.(Kind) == end {
			return "end of the recording"
		}
		return describe(input.(Kind), output.(Result))
	},
	DescribeState: func(s any) string { return s.(state).String() },
}

// effect is the item after an operation with an effect, or one that tells what
// is in the item; false if the operation cannot happen to this item.
func effect(s State, k Kind, r Result) (State, bool) {
	switch r.Verdict {
	case NotFound:
		return s, !s.Exists && (k == Get || k == Update || k == Delete)
	case Exists:
		return s, s.Exists && k == Create
	case OK, Unknown:
	default:
		return s, false
	}
	switch k {
	case Get:
		return s, s.Exists && s == r.Old
	case Create:
		return r.New, !s.Exists && r.New.Exists
	case Update:
		return r.New, s.Exists && s == r.Old
	case Upsert:
		return r.New, s == r.Old
	case Delete:
		return State{}, s.Exists
	}
	return s, false
}
