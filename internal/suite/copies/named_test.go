package copies_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// moment is when a copy of a request arrives.
type moment string

const (
	atOnce   moment = "at once, the second answer seen"
	behind   moment = "behind ten requests of others, the second answer seen"
	conflict moment = "it meets a transaction, the second answer seen"
	goingOn  moment = "while what the call began goes on"
	refused  moment = "after the call was refused"
	ended    moment = "after what the call began has ended"
	lapsed   moment = "the same, its token forgotten"
	anew     moment = "after the row was made anew"
)

// stage is one call with all that can happen around it. What is nil does not happen.
type stage struct {
	do     func(ctx context.Context) error // the call
	others func(i int)                     // a request of others at the same row
	goesOn func()                          // what its caller does next
	block  func()                          // others see to it that the call is refused
	free   func()                          // and then that it would not be
	end    func()                          // what the call began ends
	anew   func()                          // the row is deleted and made anew
	// check looks whether the call has had its effect once, if it was told written, and
	// none, if it was told not written.
	check func(t testing.TB, told repo.Verdict)
	// over looks whether a copy that was applied is in nobody's way when a lease is over.
	over func(t testing.TB)
}

// call is a row of the matrix: every cell is "written" and "the copy does nothing" but
// those that say otherwise.
type call struct {
	open func(t *testing.T, p *place) stage
	told map[moment]repo.Verdict // what is promised where the second answer is seen
	// lands are the moments at which a copy may be applied, and what bounds that.
	lands map[moment]string
	// mayLand says the same of a row whose requests are not always the same ones: another
	// caller may have tried meanwhile, and its try is copied then.
	mayLand string
	// denied is what is promised where the nth write is refused unjudged; nil: as the kind
	// says.
	denied func(k kind, nth int) repo.Verdict
}

// place is a table, a process whose requests are copied, and a clock for all.
type place struct {
	*rig.Rig
	*tape
	mu  sync.Mutex
	off time.Duration
}

func newPlace(t *testing.T) *place {
	p := &place{Rig: rig.New(t), tape: &tape{}}
	return p
}

// now is the time of all processes.
func (p *place) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.off)
}

// later moves it.
func (p *place) later(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off += by
}

// tally is the figures of a matrix.
type tally struct {
	mu                    sync.Mutex
	cells, copies, landed int
}

// TestNamed is the matrix of locks, tickets, permits, jobs and runs.
func TestNamed(t *testing.T) {
	var sum tally
	t.Cleanup(func() {
		t.Logf("%d calls, %d cells, %d copies, of which %d were applied: all where that is promised to end with a lease, or said", len(calls), sum.cells, sum.copies, sum.landed)
	})
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := calls[name]
			for _, m := range []moment{atOnce, behind, conflict} {
				for nth, more := 0, true; more && nth < 4; nth++ {
					t.Run(fmt.Sprintf("%s, write %d", m, nth), func(t *testing.T) { more = c.seenSecond(t, m, nth, &sum) })
				}
			}
			for _, m := range []moment{goingOn, refused, ended, lapsed, anew} {
				for nth, more := 0, true; more && nth < 4; nth++ {
					t.Run(fmt.Sprintf("%s, write %d", m, nth), func(t *testing.T) { more = c.later(t, m, nth, &sum) })
				}
			}
		})
	}
}

// seenSecond delivers the nth write of a call twice.
func (c call) seenSecond(t *testing.T, m moment, nth int, sum *tally) (more bool) {
	p := newPlace(t)
	s := c.open(t, p)
	if m == behind && s.others == nil {
		return false
	}
	two := second{nth: nth, conflict: m == conflict}
	if m == behind {
		two.between = func() {
			for i := range 12 {
				s.others(i)
			}
		}
	}
	p.begin(&two)
	err := s.do(t.Context())
	n := p.sent()
	p.begin(nil)
	if n <= nth {
		return false // the call sends no such write
	}
	told, want := repo.VerdictOf(err), c.told[m]
	rig.Equal(t, told, want, "told (%v)", err)
	if s.check != nil {
		s.check(t, told)
	}
	sum.add(1, 1, false)
	return true
}

// later delivers a copy of the nth write of a call when it has ended.
func (c call) later(t *testing.T, m moment, nth int, sum *tally) (more bool) {
	p := newPlace(t)
	s := c.open(t, p)
	step := func(f func()) {
		if f != nil {
			f()
		}
	}
	switch {
	case m == refused && s.block == nil, (m == ended || m == lapsed) && s.end == nil, m == anew && s.anew == nil:
		return false
	}
	p.begin(nil)
	if m == refused {
		s.block()
		p.begin(nil)
		if err := s.do(t.Context()); repo.VerdictOf(err) != repo.NotWritten {
			t.Fatalf("refused: %v", err)
		}
	} else {
		if err := s.do(t.Context()); err != nil && !errors.Is(err, errAsked) {
			t.Fatal(err)
		}
	}
	copies := p.cut(m == lapsed)
	if nth >= len(copies) {
		return false
	}
	switch m {
	case refused:
		step(s.free)
	case goingOn:
		step(s.goesOn)
	case ended, lapsed:
		s.end()
	case anew:
		step(s.end)
		s.anew()
	}
	before := contents(t, p.Table)
	answer, err := copies[nth].Deliver()
	if err != nil {
		t.Fatal(err)
	}
	rig.Is(t, answer.Body.Close())
	after := contents(t, p.Table)
	bound := c.lands[m]
	if own, ok := c.lands[m.of(nth)]; ok {
		bound = own
	}
	applied, promised := after != before, bound != ""
	if applied != promised && (!applied || c.mayLand == "") {
		t.Errorf("the copy was applied: %v, promised: %q\n%s\n->\n%s", applied, bound, before, after)
	}
	if applied && s.over != nil {
		p.later(2 * time.Minute)
		s.over(t)
	}
	sum.add(1, 1, applied)
	return true
}

// of is a moment of the nth write alone.
func (m moment) of(nth int) moment { return m + moment(fmt.Sprintf(", write %d", nth)) }

func (s *tally) add(cells, copies int, landed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cells += cells
	s.copies += copies
	if landed {
		s.landed++
	}
}

// errAsked is how an operation of once fails that is to.
var errAsked = errors.New("as the test asks")

// What bounds a copy that may be applied.
const (
	aLease = "a lease, from when the request was first sent"
	said   = "said in the documents"
)
