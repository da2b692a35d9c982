package suite

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

// Callers are callers of one process for one item: the first of them stands
// still inside its change until as many as announced wait behind it.
type Callers struct {
	Open chan struct{}  // closed when the first may go on
	Done sync.WaitGroup // of the callers

	inside chan struct{}
	once   sync.Once
}

// CallersBehind returns when the first caller is inside its change: enter calls
// for a change that calls First.
func CallersBehind(enter func(c *Callers)) *Callers {
	c := &Callers{inside: make(chan struct{}), Open: make(chan struct{})}
	c.Done.Go(func() {
		defer c.once.Do(func() { close(c.inside) }) // the change was not reached: let the test fail, not hang
		enter(c)
	})
	<-c.inside
	return c
}

// CallersOn makes the item of HotKey and stops a first caller inside its update.
func CallersOn(t *testing.T, r repo.Repository[Account], hot Account) *Callers {
	t.Helper()
	hot.ID, hot.Seq, hot.At = "hot", 1, 1
	rig.Must(r.Create(t.Context(), hot))(t)
	return CallersBehind(func(c *Callers) {
		rig.Must(r.Update(t.Context(), HotKey, func(context.Context, *Account) error { c.First(); return nil }))(t)
	})
}

// First stands still in the first change that calls it, until it may go on.
func (c *Callers) First() { c.once.Do(func() { close(c.inside); <-c.Open }) }

// Gathered waits until n callers wait behind the first, and lets it go on.
func (c *Callers) Gathered(t *testing.T, n int) {
	t.Helper()
	AwaitCallers(t, n)
	close(c.Open)
}

// AwaitCallers waits until n callers of this process wait for another. Nothing
// outward tells that they do: their goroutines are counted where they wait.
func AwaitCallers(t *testing.T, n int) {
	t.Helper()
	rig.Await(t, fmt.Sprintf("%d callers wait", n), func() bool { return waiting() == n })
}

// Whoever renames what is looked for in the stacks is to find this: nobody would
// be seen waiting any more.
var _ = (*local.Waiter[int, int]).Wait

// Callers gather in their own time: on a slow machine it takes longer than one
// waits behind a caller that does not move.
func init() { local.Patience = rig.Patience }

func waiting() (n int) {
	stacks := make([]byte, 1<<22)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "local.(*Waiter[") && strings.Contains(stack, "]).Wait(") {
			n++
		}
	}
	return n
}
