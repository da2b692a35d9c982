package transaction

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// Tx is one run of a closure. Goroutines of the closure may share it.
type Tx struct {
	call   *call
	caller context.Context // of the whole call
	ctx    context.Context // ends with the run, and when a lock is lost
	cancel context.CancelCauseFunc
	ops    sync.WaitGroup // operations under way
	rows   ofRun

	mu       sync.Mutex
	over     bool          // guarded by mu: the closure has returned
	made     bool          // guarded by mu: it was applied before, under its id
	own      *sent         // guarded by mu: and that was by this call; nil: by another
	again    bool          // guarded by mu: what it does cannot be committed, it will run again
	doomed   error         // guarded by mu: why it cannot be committed, nor run again
	failures []error       // guarded by mu: of requests of its operations
	used     []*entry      // guarded by mu: in the order of touching
	stops    []func() bool // guarded by mu: each ends the watching of a lock
}

func newTx(ctx context.Context, c *call) *Tx {
	tx := &Tx{call: c, caller: ctx, rows: ofRun{all: rows.New()}}
	tx.ctx, tx.cancel = context.WithCancelCause(context.WithValue(nesting.Within(ctx, tx), insideKey{}, true))
	for _, e := range c.held() {
		tx.watch(e.turn.Lock)
	}
	return tx
}

// insideKey is in the context of a closure, and in those that were derived from it.
type insideKey struct{}

// run runs the closure, and ends when it has returned and nothing of it is under
// way any more.
func (tx *Tx) run(fn func(context.Context, *Tx) error) error {
	defer tx.end()
	return nesting.Returned(fn(tx.ctx, tx))
}

func (tx *Tx) end() {
	tx.mu.Lock()
	tx.over = true
	stops := tx.stops
	tx.stops = nil
	tx.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	tx.cancel(errOver)
	tx.ops.Wait()
}

var errOver = fmt.Errorf("%w: the transaction is over: what it gives is for its closure alone, while that runs", repo.ErrConfig)

// watch ends the context of the closure when a lock is lost.
func (tx *Tx) watch(h *lock.Lock) {
	held := h.Context()
	stop := context.AfterFunc(held, func() { tx.cancel(context.Cause(held)) })
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.stops = append(tx.stops, stop)
}

// enter begins an operation of the closure. Its context ends with that of the
// caller and with the run.
func (tx *Tx) enter(ctx context.Context) (context.Context, func(), error) {
	if tx == nil {
		return nil, nil, fmt.Errorf("%w: the transaction is nil", repo.ErrConfig)
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	switch {
	case tx.over:
		return nil, nil, errOver
	case tx.made:
		return nil, nil, errMade
	case tx.again:
		return nil, nil, errAgain
	case tx.doomed != nil:
		return nil, nil, tx.doomed
	}
	tx.ops.Add(1)
	both, cancel := ddb.Merge(ctx, tx.ctx)
	return both, func() { cancel(); tx.ops.Done() }, nil
}

// beginAnew asks for another run, and returns the error that says why.
func (tx *Tx) beginAnew(why error) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.again = true
	return fmt.Errorf("%w: %w", errAgain, why)
}

// Doom fails the run, whatever its closure makes of the error.
func (tx *Tx) Doom(why error) error {
	if tx == nil {
		return why
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.doomed = why
	return why
}

func (tx *Tx) fate() (made, again bool, doomed error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.made, tx.again, tx.doomed
}

// Over reports whether the closure has returned.
func (tx *Tx) Over() bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.over
}

// Holds reports whether the lock of an item is held.
func (tx *Tx) Holds(item nesting.Item) bool {
	return slices.ContainsFunc(tx.call.held(), func(e *entry) bool { return e.item().Is(item) })
}

// touched are the items that the run has to do with: those of its closure, and
// those whose locks an earlier run has taken.
func (tx *Tx) touched() []*entry {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	all := tx.used
	for _, e := range tx.call.held() {
		if e.run != tx {
			e.begin(tx)
			all = append(all, e)
		}
	}
	return all
}
