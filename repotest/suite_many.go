package repotest

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// oneCreateWins checks creates of one key at once, by several processes.
func (c *check[T]) oneCreateWins() {
	item, key := c.fresh()
	var won atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		r := c.Open(c.T, c.Client)
		for range 4 {
			all.Go(func() {
				_, err := r.Create(c.soon(), item)
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, repo.ErrExists):
					c.Errorf("Create beside others: %v", err)
				}
			})
		}
	}
	all.Wait()
	if n := won.Load(); n != 1 {
		c.Errorf("%d of 12 creates of one key went through, want 1", n)
	}
	c.goesOn(key)
}

// tally counts changes by their verdict.
type tally struct{ written, unknown atomic.Int64 }

func (t *tally) add(err error) {
	switch repo.VerdictOf(err) {
	case repo.Written:
		t.written.Add(1)
	case repo.Unknown:
		t.unknown.Add(1)
	}
}

// compare checks that an item has what its changes were told.
func (c *check[T]) compare(t *tally, n, before int) {
	c.Helper()
	sure, most := before+int(t.written.Load()), before+int(t.written.Load()+t.unknown.Load())
	switch {
	case n < sure:
		c.Errorf("%d changes that ended without an error are lost: the count is %d, want %d", sure-n, n, sure)
	case n > most:
		c.Errorf("%d changes too many are in the item, made twice or said to have failed: the count is %d, want %d", n-most, n, most)
	}
}

// noChangeIsLost checks changes of one item by goroutines of several processes.
func (c *check[T]) noChangeIsLost() {
	item, key := c.stored()
	var made tally
	var all sync.WaitGroup
	for range 3 {
		r := c.Open(c.T, c.Client)
		for worker := range 4 {
			all.Go(func() {
				change := r.Update
				if worker%2 == 0 {
					change = r.Upsert
				}
				for range 4 {
					_, err := change(c.soon(), key, c.add)
					made.add(err)
				}
			})
		}
	}
	all.Wait()
	if made.written.Load() == 0 {
		c.Error("not one of 48 changes of an item by three processes went through")
	}
	c.compare(&made, c.counts(key), c.Count(item))
	c.goesOn(key)
}

// readsAreOfNow checks that a process reads what others have written, whatever it has read
// before.
func (c *check[T]) readsAreOfNow() {
	item, key := c.fresh()
	other := c.Open(c.T, c.Client)
	reads := func(after string, is error, want int) {
		c.Helper()
		for range 2 { // what the first read keeps must not answer the one behind the next write
			got, err := c.plain.Get(c.soon(), key)
			if !errors.Is(err, is) || err == nil && c.Count(got) != want {
				c.Errorf("Get after %s by another process: the count is %d, error %v; want %d, error %v", after, c.Count(got), err, want, is)
			}
		}
	}
	did := func(what string, err error) {
		c.Helper()
		if err != nil {
			c.Fatalf("%s: %v", what, err)
		}
	}
	reads("nothing", repo.ErrNotFound, 0)
	made, err := other.Create(c.soon(), item)
	did("Create", err)
	reads("Create", nil, c.Count(made))
	_, err = other.Update(c.soon(), key, c.add)
	did("Update", err)
	reads("Update", nil, c.Count(made)+1)
	did("Delete", other.Delete(c.soon(), key))
	reads("Delete", repo.ErrNotFound, 0)
}

// changeInTheMiddle lets another process change an item, make it, or delete it, while a
// change of it is under way: a lock keeps it waiting, and else the change is made anew.
func (c *check[T]) changeInTheMiddle() {
	item, key := c.stored()
	other := c.Open(c.T, c.Client)
	from := c.Count(item) // the least that a change began with
	add := func(_ context.Context, item *T) error {
		from = min(from, c.Count(*item))
		c.Add(item)
		return nil
	}
	middle := func(do func(context.Context)) func(context.Context, *T) error {
		once := sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second/2) // for one that a lock keeps waiting
			defer cancel()
			do(ctx)
		})
		return func(ctx context.Context, item *T) error { once(); return add(ctx, item) }
	}
	both := func(key repo.Key, mine, others func(context.Context, repo.Key, func(context.Context, *T) error) (T, error)) {
		var made tally
		_, err := mine(c.soon(), key, middle(func(ctx context.Context) {
			_, err := others(ctx, key, add)
			made.add(err)
		}))
		made.add(err)
		c.compare(&made, c.counts(key), from)
	}
	both(key, c.plain.Update, other.Update)
	from = math.MaxInt
	_, none := c.fresh()
	both(none, c.plain.Upsert, other.Upsert)

	var deleted error
	_, err := c.plain.Update(c.soon(), key, middle(func(ctx context.Context) { deleted = other.Delete(ctx, key) }))
	if repo.VerdictOf(deleted) != repo.Written {
		return
	}
	c.is("Update of an item that is deleted meanwhile", err, repo.ErrNotFound)
	_, err = c.plain.Get(c.soon(), key)
	c.is("Get of an item that was deleted while it was changed", err, repo.ErrNotFound)
}
