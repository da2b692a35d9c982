package repotest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// itemsComeAndGo checks one caller alone.
func (c *check[T]) itemsComeAndGo() {
	item, key := c.fresh()
	r := c.plain
	_, err := r.Get(c.soon(), key)
	c.is("Get of no item", err, repo.ErrNotFound)
	_, err = r.Update(c.soon(), key, func(context.Context, *T) error { c.Error("Update of no item ran its change"); return nil })
	c.is("Update of no item", err, repo.ErrNotFound)
	c.is("Delete of no item", r.Delete(c.soon(), key), repo.ErrNotFound)

	made, err := r.Create(c.soon(), item)
	base := c.Count(item)
	c.expect("Create", made, key, err, base)
	_, err = r.Create(c.soon(), item)
	c.is("Create of an item that is there", err, repo.ErrExists)
	got, err := r.Update(c.soon(), key, c.add)
	c.expect("Update", got, key, err, base+1)
	got, err = r.Upsert(c.soon(), key, c.add)
	c.expect("Upsert of an item", got, key, err, base+2)
	got, err = r.Update(c.soon(), key, func(context.Context, *T) error { return nil })
	c.expect("Update that changes nothing", got, key, err, base+2)

	if err := r.Delete(c.soon(), key); err != nil {
		c.Errorf("Delete: %v", err)
	}
	_, err = r.Get(c.soon(), key)
	c.is("Get after Delete", err, repo.ErrNotFound)

	_, key = c.fresh()
	from := 0
	got, err = r.Upsert(c.soon(), key, func(_ context.Context, item *T) error {
		if !same(c.Key(*item), key) {
			c.Errorf("Upsert of no item gives its change one of the key %v, want %v", c.Key(*item), key)
		}
		from = c.Count(*item)
		c.Add(item)
		return nil
	})
	c.expect("Upsert of no item", got, key, err, from+1)
	c.removes("Update", key, r.Update)
	_, key = c.stored()
	c.removes("Upsert", key, r.Upsert)
}

func (c *check[T]) removes(call string, key repo.Key, by func(context.Context, repo.Key, func(context.Context, *T) error) (T, error)) {
	c.Helper()
	if _, err := by(c.soon(), key, func(context.Context, *T) error { return repo.Remove }); err != nil {
		c.Errorf("%s that returns repo.Remove: %v", call, err)
	}
	_, err := c.plain.Get(c.soon(), key)
	c.is("Get after the repo.Remove of "+call, err, repo.ErrNotFound)
}

// expect checks what a call has returned, and what is stored.
func (c *check[T]) expect(call string, got T, key repo.Key, err error, count int) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", call, err)
	}
	if n := c.Count(got); n != count || !same(c.Key(got), key) {
		c.Errorf("%s returned an item of the key %v whose count is %d, want %v and %d", call, c.Key(got), n, key, count)
	}
	if n := c.counts(key); n != count {
		c.Errorf("after %s the stored count is %d, want %d", call, n, count)
	}
}

// failingChanges checks that nothing is written by a change that ends in another way
// than by returning nil, and that nothing stays behind.
func (c *check[T]) failingChanges() {
	item, key := c.stored()
	mine := errors.New("not enough")
	_, err := c.plain.Update(c.soon(), key, func(_ context.Context, item *T) error { c.Add(item); return fmt.Errorf("no: %w", mine) })
	c.is("Update whose change fails", err, mine)
	_, err = c.plain.Upsert(c.soon(), key, func(_ context.Context, item *T) error { c.Add(item); return mine })
	c.is("Upsert whose change fails", err, mine)
	_, none := c.fresh()
	_, err = c.plain.Upsert(c.soon(), none, func(_ context.Context, item *T) error { c.Add(item); return mine })
	c.is("Upsert of no item whose change fails", err, mine)
	_, err = c.plain.Get(c.soon(), none)
	c.is("Get after an Upsert of no item whose change failed", err, repo.ErrNotFound)
	for _, of := range []error{repo.ErrDone, repo.ErrOutcomeUnknown, repo.ErrConflict, repo.ErrLocked, repo.ErrLockLost, repo.ErrNotFound} {
		_, err := c.plain.Update(c.soon(), key, func(_ context.Context, item *T) error { c.Add(item); return fmt.Errorf("another call: %w", of) })
		c.is("Update whose change returns the error of another call", err, of)
		if v := repo.VerdictOf(err); v != repo.NotWritten {
			c.Errorf("Update whose change returns the error of another call: %v: %v", err, v)
		}
	}
	_, err = c.plain.Update(c.soon(), key, func(_ context.Context, item *T) error {
		other, _ := c.fresh()
		*item = other
		return nil
	})
	c.is("Update that changes the key", err, repo.ErrFixed)
	func() {
		defer func() {
			if p := recover(); p != any(mine) {
				c.Errorf("a change panicked, and its caller recovered %v", p)
			}
		}()
		_, err := c.plain.Update(c.soon(), key, func(_ context.Context, item *T) error { c.Add(item); panic(mine) })
		c.Errorf("a change panicked, and its caller got %v", err)
	}()
	if n := c.counts(key); n != c.Count(item) {
		c.Errorf("changes that failed have written: the count is %d, was %d", n, c.Count(item))
	}
	c.goesOn(key)
}

// noChange checks a call whose change is nil: who wraps changes may call it.
func (c *check[T]) noChange(call string, key repo.Key, by func(context.Context, repo.Key, func(context.Context, *T) error) (T, error)) {
	c.Helper()
	defer func() {
		if p := recover(); p != nil {
			c.Errorf("%s with a nil change panicked (%v): hand nil on, or return repo.ErrConfig", call, p)
		}
	}()
	_, err := by(c.soon(), key, nil)
	c.is(call+" with a nil change", err, repo.ErrConfig)
}

// badInput checks what can never work.
func (c *check[T]) badInput() {
	_, key := c.stored()
	c.noChange("Update", key, c.plain.Update)
	c.noChange("Upsert", key, c.plain.Upsert)
	_, err := c.plain.Get(c.soon(), repo.Key{})
	c.is("Get without a key", err, repo.ErrKey)
	_, err = c.plain.Update(c.soon(), repo.Key{}, c.add)
	c.is("Update without a key", err, repo.ErrKey)
	_, err = c.plain.Upsert(c.soon(), repo.Key{}, c.add)
	c.is("Upsert without a key", err, repo.ErrKey)
	c.is("Delete without a key", c.plain.Delete(c.soon(), repo.Key{}), repo.ErrKey)
	c.goesOn(key)
}

// refusal bounds a call that is to be refused without waiting for anybody.
const refusal = 5 * time.Second

// nestedChanges checks that a change of an item inside a change of the same item is told
// so: it would wait for itself, or run again and again. The context of the change says
// that it is inside.
func (c *check[T]) nestedChanges() {
	item, key := c.stored()
	for name, nested := range map[string]func(context.Context, repo.Key, func(context.Context, *T) error) (T, error){"Update": c.plain.Update, "Upsert": c.plain.Upsert} {
		runs := 0
		ctx := c.within(refusal)
		_, err := c.plain.Update(ctx, key, func(ctx context.Context, item *T) error {
			runs++
			c.Add(item)
			_, err := nested(ctx, key, c.add)
			return err
		})
		if !errors.Is(err, repo.ErrNested) || ctx.Err() != nil {
			c.Fatalf("%s inside a change of the same item: error %v, want ErrNested at once", name, err)
		}
		if runs != 1 {
			c.Errorf("a change with %s inside ran %d times", name, runs)
		}
	}
	if n := c.counts(key); n != c.Count(item) {
		c.Errorf("changes that were refused have written: the count is %d, was %d", n, c.Count(item))
	}
	// What outlives a change is not inside it any more.
	var kept context.Context
	_, err := c.plain.Update(c.soon(), key, func(ctx context.Context, item *T) error {
		kept = context.WithoutCancel(ctx)
		c.Add(item)
		return nil
	})
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.plain.Update(kept, key, c.add); err != nil {
		c.Errorf("Update with the context of a change that is over: %v", err)
	}
}
