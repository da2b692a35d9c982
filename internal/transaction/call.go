package transaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a call. Its owner has checked them.
type Config struct {
	Attempts int // how often the closure runs when others write first
	Observe  *telemetry.Observer
	Wait     repo.Wait
}

// call is one call of Run over all its runs.
type call struct {
	Config
	once    *typed.Once     // the id under which the whole is applied once; nil: it has none
	locking lease.Exclusive // held by who takes a lock: what is held must not grow meanwhile
	asking  lease.Exclusive // held by who asks for a pass
	inner   bool            // it runs inside the closure of another one, which may have the pass

	mu      sync.Mutex
	tries   int               // guarded by mu: requests that others at the items have refused
	inRow   int               // guarded by mu: commits that were refused since the last sleep
	pause   pause             // guarded by mu
	pass    *pass             // guarded by mu; nil: it was not refused yet
	entries map[string]*entry // guarded by mu: by place
	waits   []wait            // guarded by mu: of operations inside changes for others
	moments int64             // guarded by mu: counts reads and locks
	old     time.Time         // guarded by mu: what was read before is stale

	perhaps *perhaps // a request that may be applied yet, until a lock that is wanted is taken; nil: none

	requests []*sent // guarded by mu: all that were sent to commit a run
}

const (
	// atOnce is how many refusals a call answers at once, before it waits in a queue, or
	// sleeps with what it holds.
	atOnce = 2
	// mostInRow is how many refused commits in a row are answered at once, with the images
	// that they returned.
	mostInRow = 4
)

// Run runs fn until what it did is committed, or it fails.
func Run(ctx context.Context, cfg Config, fn func(context.Context, *Tx) error) error {
	_, err := run(ctx, cfg, nil, fn)
	return err
}

// run is Run, under an id if there is one: made says that the run has found it. The error
// does not tell, for a closure may return one that it has kept of another transaction.
func run(ctx context.Context, cfg Config, once *typed.Once, fn func(context.Context, *Tx) error) (made bool, err error) {
	if fn == nil {
		return false, fmt.Errorf("%w: the closure is nil", repo.ErrConfig)
	}
	if err := nesting.Run(ctx); err != nil {
		return false, err
	}
	c := &call{Config: cfg, once: once, inner: ctx.Value(insideKey{}) != nil, entries: map[string]*entry{}, pause: pause{least: cfg.Wait.Min, most: cfg.Wait.Max}}
	ctx, told := cfg.Observe.Call(ctx, telemetry.Transaction, "Run", nil)
	defer told.End(&err)
	attempts := 0
	defer func() { told.Attempts(attempts, c.tables) }()
	defer func() { c.letGo(ctx) }() // also if fn panics
	defer c.depart()
	for {
		attempts++
		made, again, err := c.attempt(ctx, fn)
		if !again {
			return made, err
		}
		switch err := c.prepare(ctx); {
		case errors.Is(err, errLanded):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// tables are those of the items that the call has touched.
func (c *call) tables() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]bool{}
	for _, e := range c.entries {
		names[e.core.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// errAgain asks for another run.
var errAgain = errors.New("the transaction begins anew")

// attempt is one run of the closure and its commit; again asks for another one.
func (c *call) attempt(ctx context.Context, fn func(context.Context, *Tx) error) (made, again bool, err error) {
	tx := newTx(ctx, c)
	torn, err := c.run(ctx, tx, fn)
	made, again, doomed := tx.fate()
	switch turns, lost := c.lost(); {
	case made && tx.own != nil: // of what an earlier run has sent
		tx.own.applied()
		return false, false, nil
	case made:
		return true, false, errMade
	case lost != nil:
		return false, false, tx.lostAt(lost, err)
	case len(turns) > 0:
		err = c.retake(ctx, turns)
		return false, errors.Is(err, errAgain), err
	case again, errors.Is(torn, errAgain):
		return false, true, nil
	case torn != nil:
		return false, false, torn
	case doomed != nil:
		return false, false, doomed
	case err != nil:
		again, err = c.confirm(ctx, tx, err)
		return false, again, err
	}
	err = c.commit(ctx, tx.touched(), tx.rows.inOrder())
	return errors.Is(err, errMade), errors.Is(err, errAgain), err
}

// lost is the error of a lock that was lost while the closure ran. turns are the items
// that are not locked by their strategy, and whose turn in the queue was lost.
func (c *call) lost() (turns []*entry, err error) {
	var failed []Failure
	for _, e := range c.held() {
		switch cause := e.turn.Lock.Cause(); {
		case cause == nil:
		case e.inQueue():
			turns = append(turns, e)
		default:
			failed = append(failed, e.failure(fmt.Errorf("%s, token %d: %w: nothing was written", e.core.ItemName(e.key), e.turn.Lock.Token(), cause)))
		}
	}
	return turns, fail(failed...)
}

// held are the items whose locks are held, in the order of items.
func (c *call) held() []*entry {
	return c.inOrder(func(e *entry) bool { return e.turn != nil })
}

// inOrder are some of the items, in the one order of all transactions.
func (c *call) inOrder(which func(*entry) bool) (some []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if which(e) {
			some = append(some, e)
		}
	}
	slices.SortFunc(some, byPlace)
	return some
}

// places are those of some items.
func places(entries []*entry) (places []string) {
	for _, e := range entries {
		places = append(places, e.place)
	}
	return places
}

// prepare makes ready for another run. Where somebody else's lock is in the way,
// all locks are let go; what is held by others without our wanting its lock is
// waited for with empty hands, and the locks are taken again in their order.
func (c *call) prepare(ctx context.Context) error {
	wanted := func(e *entry) bool { return e.wanted }
	awaited := c.inOrder(func(e *entry) bool { return e.awaited })
	if len(awaited)+len(c.inOrder(wanted)) == 0 {
		return nil
	}
	for _, e := range c.held() {
		e.wanted = true
	}
	c.letGo(ctx)
	for _, e := range awaited {
		e.awaited = false
		switch err := e.read(ctx, c, true); {
		case errors.Is(err, errQueue):
			e.wanted = true // others have come into its queue meanwhile
		case err != nil:
			return c.unprepared(e, err)
		}
	}
	for _, e := range c.inOrder(wanted) {
		e.wanted = false
		err := e.lock(ctx, c)
		if err != nil && !errors.Is(err, repo.ErrNotFound) {
			return c.unprepared(e, err)
		}
		if err := c.overtake(ctx, e, err); err != nil {
			return err
		}
	}
	return nil
}

// unprepared is why there is no other run.
func (c *call) unprepared(e *entry, err error) error {
	if c.perhaps != nil {
		return fail(c.perhaps.all(err, lock.UnknownOutcome)...)
	}
	return fail(e.failure(err))
}

// letGo gives all locks back.
func (c *call) letGo(ctx context.Context) {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	for _, e := range slices.Backward(c.held()) { // those that are deferred run in the order of items
		defer func() { _ = e.release(ctx, c) }() // each, also if the client panics in another: it ends with its lease
	}
}

// conflict counts a commit that others' writes refused, and says whether there is
// another run: errAgain, or why not. failed are the items that they wrote, unlocked
// are all that were read.
func (c *call) conflict(ctx context.Context, failed, unlocked []*entry) error {
	for _, e := range failed {
		e.core.Observe.Conflict(ctx, telemetry.Transaction)
	}
	_, last := c.refused()
	if last {
		return c.exhausted(failed)
	}
	if ctx.Err() != nil {
		return because(c.exhausted(failed), ddb.CtxError(ctx))
	}
	stale := c.takePass(ctx)
	c.mu.Lock()
	c.inRow++
	many := c.inRow > mostInRow
	c.mu.Unlock()
	if many && len(c.held()) == 0 { // else others wait for what is held
		c.sleep(ctx, 0)
		stale = true
	}
	for _, e := range unlocked {
		e.known = e.known && !stale
	}
	if ctx.Err() != nil {
		return because(c.exhausted(failed), ddb.CtxError(ctx))
	}
	return errAgain // the images that the refusal returned are fresh
}

// readAs notes what was read of an item.
func (e *entry) readAs(image ddb.Item, moment moment) {
	e.refuted = e.refuted || e.moment.assumed()
	e.image, e.moment = image, moment
	e.known = e.locker == nil && (!e.lockedByOthers() || e.readable()) // else the first touch locks it, or waits for it
}

// lineUp makes the call wait in the queues of items at which others were, where their
// repositories have such, once it has been refused too often to do without. Who holds
// locks already keeps them: it has to beat those only who are at other items of its own.
func (c *call) lineUp(items []*entry) (any bool) {
	if c.tried() < atOnce || len(c.held()) > 0 {
		return false
	}
	for _, e := range items {
		if e.lineUp() {
			e.wanted, any = true, true
		}
	}
	return any
}

// refused counts a request that others have refused; last says that it was the last one.
func (c *call) refused() (tries int, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	return c.tries, c.tries >= c.Attempts
}

// tried is how many have been refused.
func (c *call) tried() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries
}

// sleep sleeps after a refusal of a request that reads so many items; 0: that writes.
func (c *call) sleep(ctx context.Context, reading int) {
	at := situation{reading: reading, followed: len(c.held()) > 0}
	c.mu.Lock()
	at.tries, c.inRow = c.tries, 0
	at.followed = at.followed || c.pass != nil && passes.followed(c.pass)
	for _, e := range c.entries {
		at.usual = max(at.usual, usualOf(&e.core.Refused))
	}
	d := c.pause.next(at)
	c.mu.Unlock()
	ddb.Sleep(ctx, d)
}

// takePass makes a call that was refused wait for the others of its process that were at
// the same items; waited says that time has passed. Who holds a lock does not wait, for
// others wait for that.
func (c *call) takePass(ctx context.Context) (waited bool) {
	if c.inner || len(c.held()) > 0 || !c.asking.TryLock() {
		return false
	}
	defer c.asking.Unlock()
	spots := c.spots()
	c.mu.Lock()
	old := c.pass
	c.mu.Unlock()
	if old != nil && !slices.ContainsFunc(spots, func(s spot) bool { return !slices.Contains(old.spots, s) }) {
		return false
	}
	if old != nil {
		passes.end(old)
	}
	p, waited := passes.ask(ctx, spots)
	c.mu.Lock()
	c.pass = p
	c.mu.Unlock()
	return waited
}

// spots are the items of the call that are not locked.
func (c *call) spots() (spots []spot) {
	for _, e := range c.inOrder(func(e *entry) bool { return e.locker == nil }) {
		spots = append(spots, spot{clientOf(e.core.Table), e.place})
	}
	return spots
}

// depart ends the call's part in what its process does at the items.
func (c *call) depart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pass != nil {
		passes.end(c.pass)
	}
	cores := map[*protocol.Core]bool{}
	for _, e := range c.entries {
		if !cores[e.core] {
			learn(&e.core.Refused, c.tries)
		}
		cores[e.core] = true
	}
}

// exhausted says that others wrote first, each time.
func (c *call) exhausted(entries []*entry) error {
	var failed []Failure
	tries := c.tried()
	for _, e := range entries {
		failed = append(failed, e.failure(&repo.ConflictError{Table: e.core.Name, Key: e.key, Attempts: tries}))
	}
	return fail(failed...)
}
