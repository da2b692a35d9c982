package txn_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// contended are items with versions of a repository with Config.Fair, and somebody else
// who writes them.
type contended struct {
	*testing.T
	w     *world
	fair  *optimistic.Repository[counted]
	items *repo.Table[counted]
	peer  store
}

func newContended(t *testing.T) *contended {
	w := newWorld(t)
	items := table[counted](t, w.Rig, "-o", false)
	r := rig.Must(optimistic.New(items, optimistic.Config{Fair: true}))(t)
	peer := openPeer(t, w)
	return &contended{t, w, r, table[counted](t, peer.Rig, "-o", false), peer.stores["optimistic"]}
}

func (c *contended) make(name string) string {
	id := c.w.id(name)
	rig.Is(c, c.peer.create(c.Context(), id, 10))
	return id
}

// token is that of who holds an item; 0: nobody does.
func (c *contended) token(id string) int64 {
	l := rig.Must(c.items.Inspect(c.Context(), key(id)))(c)
	if !l.Held {
		return 0
	}
	return l.Token
}

func more(_ context.Context, c *counted) error { c.N++; return nil }

// want makes an item one for which the repository has its callers wait in line: it is
// refused as often as a transaction bears.
func (c *contended) want(id string) (runs int) {
	c.Helper()
	err := txn.Run(c.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		if _, err := c.fair.In(tx).Update(ctx, key(id), more); err != nil {
			return err
		}
		if c.token(id) == 0 && runs < 10 {
			return c.peer.add(txn.Outside(ctx), id, 1) // somebody writes first
		}
		return nil
	})
	rig.Is(c, err)
	return runs
}

// A transaction that others have beaten a few times waits in line for the item, and
// nobody beats it there.
func TestWhoLosesLinesUp(t *testing.T) {
	c := newContended(t)
	x := c.make("x")
	rig.Equal(t, c.want(x), 4, "runs: three without the lock and one with it would do")
	has(t, c.peer, x, 14)
	if c.token(x) != 0 {
		t.Error("the transaction has left its lock")
	}
}

// For a while the item is then locked at once by who changes it or reads it beforehand,
// in the order of items, and not by who reads it.
func TestTheNextLineUpAtOnce(t *testing.T) {
	c := newContended(t)
	x, y := c.make("x"), c.make("y")
	c.want(x)
	c.want(y)
	for name, touch := range map[string]func(context.Context, *txn.Tx) (locks bool, err error){
		"get": func(ctx context.Context, tx *txn.Tx) (bool, error) {
			_, err := c.fair.In(tx).Get(ctx, key(x))
			return false, err
		},
		"update": func(ctx context.Context, tx *txn.Tx) (bool, error) {
			_, err := c.fair.In(tx).Update(ctx, key(x), more)
			return true, err
		},
		"prefetch": func(ctx context.Context, tx *txn.Tx) (bool, error) {
			err := tx.Prefetch(ctx, c.fair.Keys(key(y), key(x)))
			if err == nil && c.token(y) == 0 {
				t.Error("prefetch: the second is not locked")
			}
			return true, err
		},
	} {
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			locks, err := touch(ctx, tx)
			rig.Equal(t, c.token(x) != 0, locks, "%s: locked", name)
			return err
		}))
		if c.token(x) != 0 || c.token(y) != 0 {
			t.Errorf("%s: a lock is left", name)
		}
	}
}

// What another holds is waited for in its queue, also where the transaction has read it
// before, or its commit finds out: it then begins with what is there.
func TestAHeldItemIsWaitedForInLine(t *testing.T) {
	for _, when := range []string{"before it is touched", "and was read", "before the commit"} {
		c := newContended(t)
		x := c.make("x")
		other := rig.Must(lockedread.New(table[counted](t, openPeer(t, c.w).Rig, "-o", false), lockedread.Config{Fair: true}))(t)
		var held *lockedread.Held[counted]
		hold := func() { held = rig.Must(other.Acquire(t.Context(), key(x)))(t) }
		late := when == "before the commit"
		if !late {
			hold()
		}
		done := make(chan error)
		go func() {
			runs := 0
			done <- txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if when == "and was read" {
					if _, err := c.fair.In(tx).Get(ctx, key(x)); err != nil {
						return err
					}
				}
				_, err := c.fair.In(tx).Update(ctx, key(x), more)
				if runs++; late && runs == 1 {
					hold()
				}
				return err
			})
		}()
		rig.Await(t, "it stands in the queue", func() bool {
			l, err := c.items.Inspect(t.Context(), key(x))
			return err == nil && l.Held && l.Last > l.Token
		})
		item := held.Item()
		item.N = 20
		rig.Must(held.Commit(t.Context(), item))(t)
		rig.Is(t, <-done)
		has(t, c.peer, x, 21)
		rig.Equal(t, c.token(x), 0, "held %s: the transaction has left its lock", when)
	}
}

// Other transactions in the way are others too.
func TestWhoMeetsTransactionsLinesUp(t *testing.T) {
	c := newContended(t)
	x, y := c.make("x"), c.make("y")
	sent := 0
	c.w.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "TransactWriteItems" {
			if sent++; sent <= 3 {
				return fault.TransactionConflict // because of the first item
			}
		}
		return fault.None
	})
	var locked []bool
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range []string{x, y} {
			if _, err := c.fair.In(tx).Update(ctx, key(id), more); err != nil {
				return err
			}
		}
		locked = append(locked, c.token(x) != 0)
		if c.token(y) != 0 {
			t.Error("what nobody wants is locked")
		}
		return nil
	}))
	if want := []bool{false, true}; !slices.Equal(locked, want) { // the first three go out as they are
		t.Errorf("locked in its runs: %v", locked)
	}
}

// Who holds one item and loses at another keeps its lock: to let it go would be to
// stand in line once more. It does not sleep either, and so reads nothing again.
func TestWhoHoldsDoesNotLineUpAgain(t *testing.T) {
	c := newContended(t)
	x, y := c.make("x"), c.make("y")
	c.want(x)
	var tokens []int64
	c.w.Count.Reset()
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range []string{x, y} {
			if _, err := c.fair.In(tx).Update(ctx, key(id), more); err != nil {
				return err
			}
		}
		tokens = append(tokens, c.token(x))
		if c.token(y) != 0 {
			t.Error("the other is locked")
		}
		if len(tokens) < 6 {
			return c.peer.add(txn.Outside(ctx), y, 1)
		}
		return nil
	}))
	for _, token := range tokens {
		if token == 0 || token != tokens[0] {
			t.Fatalf("tokens of its runs: %v", tokens)
		}
	}
	rig.Equal(t, c.w.Count.Count("GetItem"), 1, "the other was read times")
	has(t, c.peer, y, 16)
}

// Reading beforehand what the caller is changing would wait for the change itself.
func TestPrefetchInsideAChangeOfTheItem(t *testing.T) {
	c := newContended(t)
	x := c.make("x")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rig.Is(t, txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := c.fair.In(tx).Update(ctx, key(x), func(ctx context.Context, _ *counted) error {
			return tx.Prefetch(ctx, c.fair.Keys(key(x)))
		})
		return err
	}), repo.ErrNested)
	if ctx.Err() != nil {
		t.Error("it waited for itself")
	}
}

// A call is about to wait in the queues of items that others were at, and nothing more
// arrives: what it has sent may still.
func TestALineUpThatIsNotSent(t *testing.T) {
	client, copier := rig.Copied()
	r, out := rig.New(t), false
	items := rig.Must(repo.NewTable[counted](client, r.Table, repo.TableConfig{}))(t)
	rig.Is(t, items.EnsureTable(t.Context()))
	s := rig.Must(optimistic.New(items, optimistic.Config{Fair: true}))(t)
	for _, id := range []string{"a", "b"} {
		rig.Must(s.Create(t.Context(), counted{ID: id}))(t)
	}
	var sent *fault.Copy
	copier.On(func(c *fault.Copy) (*http.Response, error) {
		switch c.Op {
		case "UpdateItem":
			if out {
				return nil, errors.New("connection reset")
			}
		case "TransactWriteItems":
			out, sent = sent != nil, c
			return c.Met("TransactionConflict", 0), nil
		}
		return c.Deliver()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := txn.Config{}.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range []string{"a", "b"} {
			if _, err := s.In(tx).Update(ctx, key(id), more); err != nil {
				return err
			}
		}
		return nil
	})
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	_, err = sent.Deliver() //nolint:bodyclose // it is read, and in memory
	rig.Is(t, err)
	rig.Equal(t, rig.Must(s.Get(t.Context(), key("a")))(t).N, 1, "the copy was applied, and the item has")
}
