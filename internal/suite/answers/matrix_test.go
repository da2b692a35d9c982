package answers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

// call is a public call that writes.
type call struct {
	name string
	// open prepares it through a client, on items of its own.
	open func(t *testing.T, p *place, c client, id string) action
	// takes says that it takes something: what it has not been given may stay taken until
	// a lease is over, whatever its error says.
	takes bool
	// unsure says that one false answer may leave it without a verdict: it is not repeated.
	unsure bool
}

// action is a call that is ready.
type action struct {
	run     func(context.Context) error
	applied func(context.Context) int // how often it has been carried out
	close   func(context.Context)     // nil: nothing runs behind it
}

// place has the tables.
type place struct {
	accounts, names, operations, queues, jobs, mail string
	peer                                            client // who sees what is there
}

func newPlace(t *testing.T) *place {
	p := &place{fixture.New(t).Table, fixture.NewForLock(t, "mutex").Table, rig.New(t).Table, fixture.NewForLock(t, "ticket").Table, fixture.NewForLock(t, "permit, limit 1").Table, rig.New(t).Table, nil}
	rig.Is(t, rig.Must(once.New(rig.Client(), p.operations, once.Config{}))(t).EnsureTable(t.Context()))
	rig.Is(t, rig.Must(delegate.NewMailTable(rig.Client(), p.mail, repo.TableConfig{}))(t).EnsureTable(t.Context()))
	return p
}

func (p *place) items(t *testing.T, c repo.Client) *repo.Table[fixture.Account] {
	return rig.Must(repo.NewTable[fixture.Account](c, p.accounts, repo.TableConfig{}))(t)
}

// cell is one of the matrix.
type cell struct {
	call
	kind
	way             string
	nth             int
	applied, always bool
	only            bool // it has no other write
}

func (c *cell) String() string {
	behind, how := "not carried out", "once"
	if c.applied {
		behind = "carried out"
	}
	if c.always {
		how = "from then on"
	}
	return fmt.Sprintf("%s, %s, write %d: %s, %s, %s", c.call.name, c.way, c.nth, c.kind.name, behind, how)
}

// tally are the figures of the matrix.
type tally struct{ cells, lies, written, refused, unknown, wrong int }

func (s *tally) add(err error) {
	switch repo.VerdictOf(err) {
	case repo.Written:
		s.written++
	case repo.Unknown:
		s.unknown++
	default:
		s.refused++
	}
}

// patience is how long a call may take: some go on for as long as they may.
const patience = 15 * time.Second

// play runs a cell.
func (c *cell) play(t *testing.T, p *place, net *network, id string, sum *tally) {
	t.Helper()
	ctx := t.Context()
	a := c.open(t, p, net.client(t, c.way), id)
	if a.close != nil {
		defer a.close(ctx)
	}
	net.lies(&c.kind, c.nth, c.applied, c.always)
	limited, cancel := context.WithTimeout(ctx, patience)
	err := a.run(limited)
	cancel()
	_, lied := net.heals()
	sum.cells++
	sum.lies += lied
	sum.add(err)
	if why := c.wrong(err, a.applied(ctx), lied); why != "" {
		sum.wrong++
		t.Errorf("%v: %s: %v", c, why, err)
	}
}

// wrong says what is wrong with a verdict.
func (c *cell) wrong(err error, applied, lied int) string {
	verdict := repo.VerdictOf(err)
	switch {
	case applied > 1:
		return fmt.Sprintf("applied %d times", applied)
	case applied < 0:
		return "torn"
	case verdict == repo.Written && applied != 1:
		return "told written, and was not"
	case c.takes:
		return ""
	case verdict == repo.NotWritten && applied != 0:
		return "told not written, and was"
	case lied > 0 && c.always && c.only && verdict != repo.Unknown:
		return "not told unknown"
	case lied == 0 || c.way == "without options":
		return ""
	case !c.always && err != nil && !c.unsure:
		return "one answer was false, and the call failed"
	case c.always && c.nth == 1 && err == nil && !c.applied:
		return "told written"
	case errors.Is(err, repo.ErrDenied) || errors.Is(err, repo.ErrNoTable) || errors.Is(err, repo.ErrSchema) || errors.Is(err, repo.ErrConflict) || errors.Is(err, repo.ErrNotFound):
		return "what was false is believed"
	}
	return ""
}

// Whatever answers in the service's place, and whether or not the request was carried out
// behind it: what was applied is not told refused, what was not is not told written, and
// nothing is applied twice.
func TestFalseAnswers(t *testing.T) {
	from := int(fixture.Seed(t) % 1000)
	falseAnswers(t, func(n int) []int { return drawn(n, from) })
}

// Who mixes up the answers of requests leaves each as the service has made it: one that shows
// another item is not ours, of whatever call.
func TestAnswersOfAnotherItem(t *testing.T) {
	falseAnswers(t, func(int) (all []int) {
		for at, k := range kinds {
			if strings.Contains(k.name, "another item") || strings.Contains(k.name, "another table") {
				all = append(all, at)
			}
		}
		return all
	})
}

// falseAnswers are so many cells for each write of each call as draw gives, of the kinds and
// ways that it gives.
func falseAnswers(t *testing.T, draw func(n int) []int) {
	p := newPlace(t)
	sum := &tally{}
	rig.InVirtualTime(t, 8, func(t *testing.T, doer fault.Doer) {
		doer = &rig.Mortal{Next: doer, Latency: time.Millisecond} // who looks without a pause would let no time pass
		p.peer = rig.Client(rig.Over(doer))
		net := &network{next: doer}
		n := 0
		for _, c := range calls() {
			writes := c.writes(t, p, net, &n)
			for nth := 1; nth <= writes; nth++ {
				for i := range 4 {
					for _, at := range draw(n) {
						one := cell{c, kinds[at%len(kinds)], ways[(at/len(kinds))%len(ways)], nth, i%2 == 0, i/2 == 0, writes == 1}
						n++
						if one.hidden(one.way) {
							continue
						}
						one.play(t, p, net, fmt.Sprintf("i%d", n), sum)
					}
				}
			}
		}
	})
	t.Logf("%d calls, %d kinds: %d cells, %d false answers: %d written, %d unknown, %d refused; %d wrong",
		len(calls()), len(kinds), sum.cells, sum.lies, sum.written, sum.unknown, sum.refused, sum.wrong)
}

// drawn are the kinds and ways of a cell's share: some that go round.
func drawn(n, from int) (all []int) {
	total := len(kinds) * len(ways)
	share := rig.Share(1, 12)
	if rig.Soaking() {
		share = total
	}
	for i := range share {
		all = append(all, (from+n*7+i*(total/share))%total)
	}
	return all
}

// writes is how many writes an undisturbed call sends.
func (c *call) writes(t *testing.T, p *place, net *network, n *int) int {
	t.Helper()
	*n++
	a := c.open(t, p, net.client(t, ways[0]), fmt.Sprintf("i%d", *n))
	if a.close != nil {
		defer a.close(t.Context())
	}
	net.lies(nil, 0, false, false)
	rig.Is(t, a.run(t.Context()))
	writes, _ := net.heals()
	if applied := a.applied(t.Context()); applied != 1 {
		t.Fatalf("%s: applied %d times, undisturbed", c.name, applied)
	}
	return writes
}

func calls() (all []call) {
	all = append(all, itemCalls()...)
	all = append(all, delegateCalls()...)
	all = append(all, transactionCalls()...)
	all = append(all, lockCalls()...)
	return append(all, jobCalls()...)
}
