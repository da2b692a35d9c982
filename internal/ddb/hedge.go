package ddb

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/goroutine"
)

// Hedge sends a write once more, with the same bytes, when its attempt has had no answer
// for a while, and lets both run: where requests take now long and now short, the second
// one is often there first. The answer to either is the verdict on both, and one of them
// may have been applied before the other is refused: so the image must tell, and where there
// is none the other answer is waited for, for [Settle]. It is no attempt that the client's
// policy counts, and only the first attempt has one.
type Hedge struct {
	After  time.Duration // 0: there is no hedge
	Budget *Budget       // of what is sent then
	// Lost is after how long without an answer the request is taken for lost: another one
	// goes out then whatever the budget, and the next after twice as long, and so on, as one
	// request that takes very long is everybody's time. 0: never.
	Lost time.Duration
}

const never = 1 << 62 // 146 years

// Budget bounds what hedges cost: they are a share of the writes that could have one, but
// for a few at first. The zero value is ready.
type Budget struct {
	mu    sync.Mutex
	spent int // guarded by mu: in writes
}

// One write in so many may be sent twice, and so many hedges ahead of that.
const (
	writesAHedge = 5
	hedgesAhead  = 10
)

// earn notes a write that could have a hedge.
func (b *Budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-1, 0)
}

// spend takes a hedge out of the budget, if there is one.
func (b *Budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent > (hedgesAhead-1)*writesAHedge {
		return false
	}
	b.spent += writesAHedge
	return true
}

// answered is what came of an attempt.
type answered struct {
	of   *attempt
	item Item
	err  error
}

// hedged makes the present attempt, which is the first one, and others beside it while it is
// late; then it returns the answer that decides, else the last one. Nothing that it has sent is
// under way any more when it returns.
func (c *call) hedged(ctx context.Context) (seen sight, item Item, err error) {
	ctx, cancel := context.WithCancel(ctx)
	answers, underWay := make(chan answered), 0
	send := func(a *attempt) {
		underWay++
		go func() {
			got := answered{a, nil, goroutine.ErrEnded}
			defer func() { answers <- got }()
			got.item, got.err = c.do(ctx, a)
		}()
	}
	defer func() {
		cancel()
		for ; underWay > 0; underWay-- {
			(<-answers).of.judged()
		}
	}()
	hedge := &c.opt.Hedge
	hedge.Budget.earn()
	send(c.attempt)
	late, lost := time.After(hedge.After), time.After(cmp.Or(hedge.Lost, never))
	var gone <-chan time.Time
	clean := c.res.Clean // and what was answered so far leaves no doubt
	for {
		again := false
		select {
		case a := <-answers:
			underWay--
			if seen = a.of.judged(); underWay == 0 {
				c.res.Clean = clean // what is true of the last one its caller finds out
				return seen, a.item, a.err
			}
			if c.decisive(&seen, a.err) {
				return seen, a.item, a.err
			}
			if _, refused := conditionFailed(a.err); refused && gone == nil {
				late, lost, gone = nil, nil, time.After(Settle) // more of them would find no item either
			}
			clean = clean && !c.doubtful(&seen, a.err)
		case <-gone:
			cancel()
		case <-late:
			again = c.attempt.left() && hedge.Budget.spend()
		case <-lost:
			again = c.attempt.left()
			hedge.Lost *= 2
			lost = time.After(hedge.Lost)
		}
		if again {
			c.res.Clean = false // one of them may be applied, whatever another one hears
			send(c.attempt.next())
		}
	}
}

// doubtful reports whether an attempt that was not answered by a yes or a no may have been
// applied.
func (c *call) doubtful(seen *sight, err error) bool {
	if seen.hidden() || c.unproven(c.op, seen, err) != nil {
		return true
	}
	kind := seen.classify(err)
	return kind == ambiguous || kind == spent
}

// decisive reports whether an answer is the verdict on all attempts: a yes, or a no that
// shows an item. If another one was applied before the item was deleted, nothing but its
// own answer can tell.
func (c *call) decisive(seen *sight, err error) bool {
	image, failed := conditionFailed(err)
	return (err == nil || failed && len(image) > 0) && c.unproven(c.op, seen, err) == nil
}
