package protocol

import "slices"

// What an acquirer of the item lock knows, and what is true of it.

type phase int8

const (
	fresh phase = iota
	taking
	holding
	ending // the write that ends the hold is sent
	done
)

type op int8

const (
	commit op = iota
	remove    // delete the item
	release
)

var opNames = [...]string{"commit", "delete", "release"}

// copies are requests that are on their way though nobody waits for them any
// more: n, with one content.
type copies struct {
	n    int8
	at   int8 // the time in their bytes; of an extension the new lockTime
	try  int8 // the attempt that its id names
	stub bool
}

// and adds a copy. Only copies of one content are kept: which, is a choice.
func (c copies) and(more copies, most int8) []copies {
	same := c
	same.n = more.n
	switch {
	case most == 0:
		return []copies{{}}
	case c.n == 0:
		return []copies{more}
	case same == more:
		more.n = min(c.n+1, most)
		return []copies{more}
	}
	return []copies{c, more}
}

// acquirer is one acquisition with its hold.
type acquirer struct {
	phase   phase
	waiting bool // an attempt is sent, and neither delivered nor given up
	unsure  bool // an attempt of the present request ended without an answer
	tries   int8 // attempts of the present request

	stub     bool // the present acquire makes a stub
	sent     int8 // the time in the bytes of the present acquire
	lateTake copies

	token    token
	try      int8
	until    int8 // the holder's deadline
	fromStub bool
	op       op
	now      int8 // :now in the bytes of the present write
	lateOp   copies
	lateExt  copies

	// The truth, which no acquirer sees.
	applied bool // the write that ends the hold
	stale   bool // others ended this hold, or wrote since its read
	over    bool // the life of the item that was read is over
	broken  bool // by an operator
	verdict Verdict
}

// removes reports whether the write that ends the hold deletes the item.
func (a *acquirer) removes() bool { return a.op == remove || a.op == release && a.fromStub }

// forget drops what cannot matter any more, so that worlds which differ in
// nothing else count as one.
func (m *lockModel) forget(w lockWorld) lockWorld {
	for i := range w.who {
		a := &w.who[i]
		a.tidy()
		if a.phase == taking && a.tries >= m.takes || a.phase == ending && !a.waiting && a.tries >= m.tries {
			a.phase = done // it gives up
		}
		switch {
		case a.phase == taking && !a.unsure:
			a.sent = 0
		case a.phase == done && a.lateOp.n == 0 && a.lateExt.n == 0:
			*a = acquirer{phase: done, lateTake: a.lateTake}
		case a.phase == done:
			a.unsure, a.tries, a.until, a.over, a.broken = false, 0, 0, false, false
			a.stale = a.stale && !a.applied
			if a.verdict == Committed {
				a.verdict = Undecided
			}
		case a.phase >= holding && !a.fromStub && (a.phase == ending && a.op != remove || !slices.Contains(m.ops, remove)):
			a.over, a.broken = false, false
			if !m.extend {
				a.until = 0
			}
		}
	}
	return w
}

// tidy makes equal what has no copies left.
func (a *acquirer) tidy() {
	for _, c := range []*copies{&a.lateTake, &a.lateOp, &a.lateExt} {
		if c.n == 0 {
			*c = copies{}
		}
	}
}
