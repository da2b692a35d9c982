package copies_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// line is who waits in the queues besides the transaction.
type line struct {
	name           string
	writer, behind bool // a writer without the lock before it; somebody behind it
}

var lines = []line{{name: "behind a lock"}, {name: "behind a lock and a writer", writer: true}, {name: "between locks", behind: true}}

// queueCell is one transaction, in queues, and what befalls it.
type queueCell struct {
	*txnCell
	line
	mishap
	nth int // the write that it befalls, from 0

	all   *shop // what others use, in the time of the cell
	leave context.CancelFunc
	// takers take the locks of the items with queues as others do; nil: it has none.
	takers []queueTaker
	gone   sync.WaitGroup // those that wait

	silent    atomic.Bool // nothing of the call arrives, nor is anything answered
	delivered atomic.Bool
	struck    atomic.Bool
	released  atomic.Bool

	mu     sync.Mutex
	writes int         // guarded by mu
	hit    *fault.Copy // changed under mu
}

// deliver delivers a copy, whatever the answer to it is.
func (w *queueCell) deliver(one *fault.Copy) {
	if resp, err := one.Deliver(); err == nil {
		_ = resp.Body.Close()
	}
}

// breakTurns ends the holds of all items, if those who held them before the call have let go.
func (w *queueCell) breakTurns() {
	if !w.released.Load() {
		return
	}
	for _, q := range w.takers {
		if q != nil {
			if err := q.breakHold(w.t.Context()); err != nil && !errors.Is(err, repo.ErrNotFound) {
				w.t.Error(err)
			}
		}
	}
}

// pass is the network of the call.
func (w *queueCell) pass(one *fault.Copy) (*http.Response, error) {
	if w.silent.Load() {
		return nil, errCutOff
	}
	if w.act == nil {
		return nil, nil
	}
	w.mu.Lock()
	befallen := w.hit != nil
	if fault.Writes(one) {
		w.writes++
	}
	mine := !befallen && fault.Writes(one) && w.writes == w.nth+1
	if mine {
		w.hit = one
		w.struck.Store(true)
	}
	w.mu.Unlock()
	var r reply
	switch {
	case mine:
		r = w.act(w, one)
	case befallen && w.then != nil:
		r = w.then(w, one)
	}
	switch {
	case r.again:
		return one.Deliver()
	case r.code != "":
		return one.Met(r.code, 0), nil
	}
	return nil, r.err
}

// longest is for how long a call may last that nobody ends: patience for an answer, three
// turns of others that have died, and a minute.
const longest = 3 * time.Minute

// run runs the cell in virtual time. struck says that there was such a write.
func (w *queueCell) runCell(t *testing.T, network fault.Doer) (err error) {
	ctx, leave := context.WithTimeout(t.Context(), longest)
	defer leave()
	w.leave = leave
	net := fault.NewCopier(network)
	w.mine, w.all, w.t = shopIn(t, rig.Client(rig.Over(net))), shopIn(t, rig.Client(rig.Over(network))), t
	w.peer = w.all
	read(ctx, w.mine, "nobody") // its credentials have been good before, at each table
	_, _ = w.mine.n.Get(ctx, thingKey("nobody"))
	_, _ = w.mine.p.Get(ctx, thingKey("nobody"))
	letGo := w.queue(t, network)
	net.On(w.pass)
	ended := make(chan error, 1)
	go func() { ended <- w.run(w.during(ctx)) }()
	time.Sleep(30 * time.Millisecond)
	if w.behind {
		for _, q := range w.takers {
			w.stand(q)
		}
	}
	time.Sleep(5 * time.Millisecond)
	letGo()
	began := time.Now()
	err = <-ended
	net.On(nil)
	if took := time.Since(began); took > longest-time.Second && !w.fails {
		t.Errorf("it has waited for %v: %v", took, err)
	}
	if w.after != nil && w.hit != nil {
		w.after(w, w.hit)
	}
	w.gone.Wait()
	w.comeNext(t)
	synctest.Wait()
	return err
}

type insideKey struct{}

// during gives the closure what comes inside it.
func (w *queueCell) during(ctx context.Context) context.Context {
	return context.WithValue(ctx, insideKey{}, func() {
		if w.inside != nil && w.released.Load() && !w.struck.Swap(true) {
			w.inside(w)
		}
	})
}

// queue lets others hold the items, and wait for them. letGo lets all go.
func (w *queueCell) queue(t *testing.T, network fault.Doer) (letGo func()) {
	var held []func(context.Context) error
	client := rig.Client(rig.Over(network))
	for i, o := range w.ops {
		var q queueTaker
		switch {
		case !o.there || o.held:
			w.takers = append(w.takers, nil)
			continue
		case isEvent(o):
			q = takerIn[happening]{rig.Must(repo.NewTable[happening](client, shopTables.Table+"-n", repo.TableConfig{}))(t), w.ids[i]}
		default:
			q = takerIn[thing]{rig.Must(repo.NewTable[thing](client, shopTables.Table+"-o", repo.TableConfig{}))(t), w.ids[i]}
		}
		w.takers = append(w.takers, q)
		held = append(held, rig.Must(q.take(t.Context()))(t))
		w.stand(q)
		time.Sleep(5 * time.Millisecond)
		if w.writer {
			w.gone.Go(func() { rig.Is(t, o.others(t.Context(), w.all, w.ids[i])) })
		}
	}
	time.Sleep(5 * time.Millisecond)
	return func() {
		for i, release := range held {
			rig.Is(t, release(t.Context()))
			w.released.Store(i == len(held)-1)
			time.Sleep(30 * time.Millisecond) // the next item's queue waits for the call
		}
	}
}

// stand lets somebody wait for an item, have it for a moment, and leave.
func (w *queueCell) stand(q queueTaker) {
	if q == nil {
		return
	}
	w.gone.Go(func() {
		release, err := q.take(w.t.Context())
		if err == nil {
			time.Sleep(5 * time.Millisecond)
			err = release(w.t.Context())
		}
		if err != nil && !errors.Is(err, repo.ErrNotFound) && !errors.Is(err, repo.ErrLockLost) { // others break it
			w.t.Errorf("who waits besides: %v", err)
		}
	})
}

// comeNext looks whether others come to each item in the lease of a turn.
func (w *queueCell) comeNext(t *testing.T) {
	for i, q := range w.takers {
		if q == nil {
			continue
		}
		began := time.Now()
		release, err := q.take(t.Context())
		if errors.Is(err, repo.ErrNotFound) {
			continue
		}
		if err == nil {
			err = release(t.Context())
		}
		if took := time.Since(began); err != nil || took > turnLease {
			t.Errorf("item %d: the next one waited for %v: %v", i, took, err)
		}
	}
}

// TestTransactionsInTheQueue is the matrix of transactions over items with queues, in which
// they take turns, and of what befalls each of their writes: nothing is applied twice,
// nothing that was applied is told as not written, and nobody waits without end.
func TestTransactionsInTheQueue(t *testing.T) {
	told, cells := map[repo.Verdict]int{}, 0
	var mu sync.Mutex
	t.Run("cells", func(t *testing.T) {
		i, row := 0, 0
		for _, c := range inQueueTransactions() {
			for _, l := range lines {
				row++
				for _, m := range mishaps() {
					i++
					first, n := 0, 100
					if rig.Quick() && (i+row)%2 == 0 { // every mishap in every other row
						continue
					} else if rig.Quick() {
						first, n = i%5, 1 // of the writes that most calls have
					}
					t.Run(fmt.Sprintf("%s, %s: %s", c.name, l.name, m.name), func(t *testing.T) {
						t.Parallel()
						for nth := first; nth < first+n; nth++ {
							verdict, struck := inQueues(t, c, l, m, nth)
							if !struck {
								return
							}
							mu.Lock()
							told[verdict]++
							cells++
							mu.Unlock()
							if m.inside != nil {
								return
							}
						}
					})
				}
			}
		}
	})
	t.Logf("%d transactions, %d queues, %d accidents, %d cells: written %d, not written %d, unknown %d", len(inQueueTransactions()), len(lines), len(mishaps()), cells,
		told[repo.Written], told[repo.NotWritten], told[repo.Unknown])
}

// inQueues runs one cell.
func inQueues(t *testing.T, c transaction, l line, m mishap, nth int) (verdict repo.Verdict, struck bool) {
	w := &queueCell{txnCell: newCell(t, c), line: l, mishap: m, nth: nth}
	peer := w.peer
	var err error
	rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) { err = w.runCell(t, network) })
	w.peer, w.t = peer, t
	verdict = repo.VerdictOf(err)
	n := w.applied()
	wrong := map[repo.Verdict]bool{repo.Written: n != 1, repo.NotWritten: n != 0, repo.Unknown: n > 1}[verdict]
	switch {
	case m.dies:
		wrong = n > 1 // nobody is told anything
	case m.after != nil && c.name == "Apply":
		wrong = n == 0 // what a lock has refused of it is bound to nothing: docs/limits.md
	}
	if wrong {
		t.Errorf("write %d: applied %d times, and %v: %v", nth, n, verdict, err)
	}
	if m.breaks && verdict != repo.Written && (!c.saves || !l.writer) {
		t.Errorf("whose turn is lost does not take another: %v", err)
	}
	return verdict, w.struck.Load()
}
