package dynahold_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// crowd opens a gate: the first change stands still inside it until as many
// callers as announced wait behind it.
type crowd struct {
	inside, open chan struct{}
	once         sync.Once
	done         sync.WaitGroup // of the callers
}

// crowdBehind is a crowd whose first caller is inside: enter calls for a change
// that calls first.
func crowdBehind(enter func(c *crowd)) *crowd {
	c := &crowd{inside: make(chan struct{}), open: make(chan struct{})}
	c.done.Go(func() {
		defer c.once.Do(func() { close(c.inside) }) // the change was not reached: let the test fail, not hang
		enter(c)
	})
	<-c.inside
	return c
}

// crowdOn makes the hot item and stops a first caller inside its update.
func crowdOn(t *testing.T, r repo.Repository[Account], hot Account) *crowd {
	t.Helper()
	hot.ID, hot.Seq, hot.At = "hot", 1, 1
	rig.Must(r.Create(t.Context(), hot))(t)
	return crowdBehind(func(c *crowd) {
		rig.Must(r.Update(t.Context(), hotKey, func(context.Context, *Account) error { c.first(); return nil }))(t)
	})
}

// first stands still in the first change that calls it, until the gate opens.
func (c *crowd) first() { c.once.Do(func() { close(c.inside); <-c.open }) }

// standing waits until n callers stand in line, and opens the gate. That they
// stand there has no outward sign: their goroutines are counted where they wait.
func (c *crowd) standing(t *testing.T, n int) {
	t.Helper()
	inLine(t, n)
	close(c.open)
}

// inLine waits until n callers stand in line.
func inLine(t *testing.T, n int) {
	t.Helper()
	rig.Await(t, fmt.Sprintf("%d callers stand in line", n), func() bool { return waitingInLine() == n })
}

// Whoever renames what is looked for in the stacks is to find this: nobody would
// be seen in line any more.
var _ = (*local.Waiter[int, int]).Wait

// A crowd gathers in its own time: on a slow machine it takes longer than a
// caller stands behind one that does not move.
func init() { local.Patience = rig.Patience }

func waitingInLine() (n int) {
	stacks := make([]byte, 1<<22)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "local.(*Waiter[") && strings.Contains(stack, "]).Wait(") {
			n++
		}
	}
	return n
}
