package repotest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dynahold/dynahold/repo"
)

// action is one call, and how to tell what has become of it.
type action[T any] struct {
	name string
	// begin makes what the call needs, and returns the call, and what tells how often it
	// is in the table.
	begin func() (key repo.Key, do func(context.Context, repo.Repository[T]) error, times func() int)
}

func (c *check[T]) actions() []action[T] {
	there := func(key repo.Key) bool {
		_, err := c.plain.Get(c.soon(), key)
		if err != nil && !errors.Is(err, repo.ErrNotFound) {
			c.Errorf("Get: %v", err)
		}
		return err == nil
	}
	return []action[T]{
		{"Create", func() (repo.Key, func(context.Context, repo.Repository[T]) error, func() int) {
			item, key := c.fresh()
			return key, func(ctx context.Context, r repo.Repository[T]) error { _, err := r.Create(ctx, item); return err },
				func() int { return number(there(key)) }
		}},
		{"Update", func() (repo.Key, func(context.Context, repo.Repository[T]) error, func() int) {
			item, key := c.stored()
			return key, func(ctx context.Context, r repo.Repository[T]) error { _, err := r.Update(ctx, key, c.add); return err },
				func() int { return c.counts(key) - c.Count(item) }
		}},
		{"Upsert", func() (repo.Key, func(context.Context, repo.Repository[T]) error, func() int) {
			_, key := c.fresh()
			var from *int // what the first change began with
			return key, func(ctx context.Context, r repo.Repository[T]) error {
					_, err := r.Upsert(ctx, key, func(_ context.Context, item *T) error {
						if n := c.Count(*item); from == nil {
							from = &n
						}
						c.Add(item)
						return nil
					})
					return err
				}, func() int {
					if from == nil || !there(key) {
						return number(there(key))
					}
					return c.counts(key) - *from
				}
		}},
		{"Delete", func() (repo.Key, func(context.Context, repo.Repository[T]) error, func() int) {
			_, key := c.stored()
			return key, func(ctx context.Context, r repo.Repository[T]) error { return r.Delete(ctx, key) },
				func() int { return number(!there(key)) }
		}},
	}
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// judge compares what a call was told with what is stored.
func (c *check[T]) judge(what string, err error, times int) {
	c.Helper()
	switch v := repo.VerdictOf(err); {
	case times < 0 || times > 1:
		c.Errorf("%s: it is in the item %d times; error %v", what, times, err)
	case v == repo.Written && times == 0:
		c.Errorf("%s: it ended without an error, and nothing was written", what)
	case v == repo.NotWritten && times == 1:
		c.Errorf("%s: its error says that nothing was written, and it was: %v", what, err)
	}
}

// sent are the requests of an action by operation, when nothing breaks.
func (c *check[T]) sent(a action[T]) (operations []string, counts map[string]int) {
	c.Helper()
	r, faults := c.process()
	_, do, times := a.begin()
	if err := do(c.soon(), r); err != nil {
		c.Fatalf("%s: %v", a.name, err)
	}
	if counts = faults.count.Counts(); len(counts) == 0 {
		c.Fatalf("%s sent no request by the client that Suite.Open was given: nothing of it can be broken", a.name)
	}
	c.judge(a.name, nil, times())
	return slices.Sorted(maps.Keys(counts)), counts
}

// verdictsUnderFaults breaks each request of each call, in each way.
func (c *check[T]) verdictsUnderFaults() {
	for _, a := range c.actions() {
		operations, counts := c.sent(a)
		for _, op := range operations {
			for nth := 1; nth <= counts[op]; nth++ {
				for _, kind := range AllFaults() {
					r, faults := c.process()
					_, do, times := a.begin()
					faults.Nth(op, nth, kind)
					err := do(c.soon(), r)
					faults.Reset() // waits for late copies
					if a.name == "Delete" && kind == ArrivesTwice && errors.Is(err, repo.ErrNotFound) {
						continue // it is gone, and nothing is left that could tell by whom: docs/limits.md
					}
					c.judge(fmt.Sprintf("%s, whose %s number %d meets the fault %q", a.name, op, nth, kind), err, times())
				}
			}
		}
	}
}

// verdictsUnderOutages loses some requests in a row, or the answers to them, from each
// request of each call on: so many that the client gives up, too, and its caller is told
// that nobody knows. Which of the two it was the client cannot tell.
func (c *check[T]) verdictsUnderOutages() {
	for _, a := range c.actions() {
		var all sync.WaitGroup
		operations, counts := c.sent(a)
		for _, op := range operations {
			for nth := 1; nth <= counts[op]; nth++ {
				lengths := []int{2, attempts, attempts + 1, attempts + 2}
				if nth == 1 && op != "GetItem" {
					lengths = append(lengths, forGood)
				}
				for _, length := range lengths {
					for _, kind := range []Fault{AnswerLost, RequestLost} {
						r, faults := c.process()
						_, do, times := a.begin()
						for i := range length {
							faults.Nth(op, nth+i, kind)
						}
						all.Go(func() { // most of it is waiting
							err := do(c.soon(), r)
							faults.Reset()
							c.judge(fmt.Sprintf("%s, with the fault %q at %d requests from %s number %d on", a.name, kind, length, op, nth), err, times())
						})
					}
				}
			}
		}
		all.Wait()
	}
}

// forGood is an outage that outlasts a call: a write in doubt is sent again for a second
// after the client's policy has given up.
const forGood = 500

// endedContext checks that nothing is sent for a caller that has gone.
func (c *check[T]) endedContext() {
	for _, a := range c.actions() {
		r, faults := c.process()
		key, do, times := a.begin()
		mine := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(c.Context())
		cancel(mine)
		for name, call := range map[string]func(context.Context, repo.Repository[T]) error{
			a.name: do,
			"Get":  func(ctx context.Context, r repo.Repository[T]) error { _, err := r.Get(ctx, key); return err },
		} {
			err := call(ctx, r)
			c.is(name+" with a context that has ended", err, context.Canceled)
			c.is(name+" with a context that has ended", err, mine)
			if n := faults.Requests(); n != 0 || times() != 0 {
				c.Errorf("%s with a context that has ended sent %d requests", name, n)
			}
		}
	}
}

// endingContexts cancels the caller's context at each request of each call, and inside
// the change.
func (c *check[T]) endingContexts() {
	for _, a := range c.actions() {
		operations, counts := c.sent(a)
		for _, op := range operations {
			for nth := 1; nth <= counts[op]; nth++ {
				for _, kind := range []Fault{0, RequestLost, AnswerLost} {
					what := fmt.Sprintf("%s, whose context ends at %s number %d", a.name, op, nth)
					r, faults := c.process()
					key, do, times := a.begin()
					ctx, cancel := context.WithCancel(c.soon())
					faults.Before(op, nth, cancel)
					if kind != 0 {
						faults.Nth(op, nth, kind)
						what += fmt.Sprintf(" with the fault %q", kind)
					}
					err := do(ctx, r)
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) && repo.VerdictOf(err) != repo.Unknown {
						c.Errorf("%s: error %v, want context.Canceled or ErrOutcomeUnknown in it", what, err)
					}
					faults.Reset()
					done := times()
					c.judge(what, err, done)
					if a.name == "Update" {
						c.goesOn(key)
					}
				}
			}
		}
	}
	_, key := c.stored()
	before := c.counts(key)
	ctx, cancel := context.WithCancel(c.soon())
	defer cancel()
	_, err := c.plain.Update(ctx, key, func(inner context.Context, item *T) error {
		cancel()
		select {
		case <-inner.Done():
		case <-c.soon().Done():
			c.Error("the context of a change goes on when its caller's has ended")
		}
		c.Add(item)
		return nil
	})
	c.judge("Update whose context ends inside its change", err, c.counts(key)-before)
	c.goesOn(key)
}
