package txn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// What makes no sense is refused with a word of what is wrong, and nothing is
// written.
func TestBadInput(t *testing.T) {
	w := newWorld(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), x, 10))
	rig.Is(t, s.create(t.Context(), y, 10))
	type run = func(ctx context.Context, tx *txn.Tx) error
	var kept *txn.Tx
	for name, c := range map[string]struct {
		run  run
		want []error
		text string
	}{
		"nested": {func(ctx context.Context, _ *txn.Tx) error {
			return txn.Run(ctx, func(context.Context, *txn.Tx) error { return nil })
		}, []error{repo.ErrNested, repo.ErrConfig}, "inside another"},
		"one item by two repositories": {func(ctx context.Context, tx *txn.Tx) error {
			other := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
			if _, err := other.In(tx).Get(ctx, key(x)); err != nil {
				return err
			}
			return s.in(tx).add(ctx, x, 1)
		}, []error{repo.ErrConfig}, "another repository"},
		"two clients": {func(ctx context.Context, tx *txn.Tx) error {
			if err := s.in(tx).add(ctx, x, 1); err != nil {
				return err
			}
			return openWorld(t, w.Peer(), false).stores["pessimistic"].in(tx).add(ctx, y, 1)
		}, []error{repo.ErrConfig}, "another client"},
		"a change of its own item": {func(ctx context.Context, tx *txn.Tx) error {
			view := s.in(tx)
			_, err := view.(of[counted]).Update(ctx, key(x), func(context.Context, *counted) error { return view.add(ctx, x, 1) })
			return err
		}, []error{repo.ErrNested}, "its own item"},
		"a key that is none": {func(ctx context.Context, tx *txn.Tx) error { return s.in(tx).add(ctx, "", 1) }, []error{repo.ErrKey}, ""},
		"an item that is too large": {func(ctx context.Context, tx *txn.Tx) error {
			_, err := s.in(tx).(of[counted]).Update(ctx, key(x), func(_ context.Context, c *counted) error {
				c.Log = []string{strings.Repeat("x", 409_000)}
				return nil
			})
			return err
		}, []error{repo.ErrTooLarge}, ""},
		"no change": {func(ctx context.Context, tx *txn.Tx) error {
			_, err := s.in(tx).(of[counted]).Update(ctx, key(x), nil)
			return err
		}, []error{repo.ErrConfig}, "nil"},
		"the version": {func(ctx context.Context, tx *txn.Tx) error {
			_, err := s.in(tx).(of[counted]).Update(ctx, key(x), func(_ context.Context, c *counted) error { c.Version++; return nil })
			return err
		}, []error{repo.ErrFixed}, "version"},
		"the transaction before": {func(ctx context.Context, _ *txn.Tx) error { return s.in(kept).add(ctx, x, 1) }, []error{repo.ErrConfig}, "over"},
		"no transaction":         {func(ctx context.Context, _ *txn.Tx) error { return s.in(nil).add(ctx, x, 1) }, []error{repo.ErrConfig}, "nil"},
		"no closure":             {nil, []error{repo.ErrConfig}, "nil"},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Is(t, txn.Run(t.Context(), func(_ context.Context, tx *txn.Tx) error { kept = tx; return nil }))
			err := txn.Run(t.Context(), c.run)
			rig.Is(t, err, c.want...)
			if !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error %v does not say %q", err, c.text)
			}
			has(t, s, x, 10)
			has(t, s, y, 10)
		})
	}
	rig.Is(t, txn.Config{Attempts: -1}.Run(t.Context(), func(context.Context, *txn.Tx) error { return nil }), repo.ErrConfig)
	rig.Is(t, txn.Config{Wait: repo.Wait{Attempts: 3}}.Run(t.Context(), func(context.Context, *txn.Tx) error { return nil }), repo.ErrConfig)
	rig.Is(t, txn.Config{Wait: repo.Wait{Min: 2, Max: 1}}.Run(t.Context(), func(context.Context, *txn.Tx) error { return nil }), repo.ErrConfig)
}

// More than DynamoDB takes is refused before the commit is sent.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	s := w.stores["optimistic"]
	create := func(n, size int) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for i := range n {
				item := counted{ID: w.id(fmt.Sprintf("%d %d %d", n, size, i))}
				if size > 0 {
					item.Log = []string{strings.Repeat("x", size)}
				}
				if _, err := s.in(tx).(of[counted]).Create(ctx, item); err != nil {
					return err
				}
			}
			return nil
		})
	}
	rig.Is(t, create(100, 0))
	w.Count.Reset()
	err := create(101, 0)
	rig.Is(t, err, txn.ErrTooLarge)
	if !strings.Contains(fmt.Sprint(err), "100 items") {
		t.Errorf("error %v", err)
	}
	err = create(11, 390_000)
	rig.Is(t, err, txn.ErrTooLarge)
	if !strings.Contains(fmt.Sprint(err), "4194304") {
		t.Errorf("error %v", err)
	}
	r := rig.Must(nolock.New(table[event](t, w.Rig, "-n", false), nolock.Config{}))(t)
	long := []string{strings.Repeat("x", 390_000)}
	for _, write := range []func(context.Context, *txn.Tx, string) error{ // which read nothing
		func(ctx context.Context, tx *txn.Tx, id string) error {
			return r.In(tx).Put(ctx, event{ID: id, At: 1, Log: long})
		},
		func(ctx context.Context, tx *txn.Tx, id string) error {
			return r.In(tx).Apply(ctx, key(id), int64(1), expression.Set(expression.Name("log"), expression.Value(long)))
		},
	} {
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) (err error) {
			for i := range 11 {
				err = errors.Join(err, write(ctx, tx, w.id(fmt.Sprint(i))))
			}
			return err
		}), txn.ErrTooLarge)
	}
	rig.Equal(t, w.Count.Total(), 0, "%v requests", w.Count.Counts())
}

// A client that knows no transactions serves one item.
func TestClientWithoutTransactions(t *testing.T) {
	w := newWorld(t)
	narrow := struct{ repo.Client }{w.Client}
	r := rig.Must(optimistic.New(rig.Must(repo.NewTable[counted](narrow, w.Table+"-o", repo.TableConfig{}))(t), optimistic.Config{}))(t)
	create := func(ids ...string) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for _, id := range ids {
				if _, err := r.In(tx).Create(ctx, counted{ID: w.id(id)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	rig.Is(t, create("a"))
	rig.Is(t, create("b", "c"), repo.ErrConfig)
	has(t, w.stores["optimistic"], w.id("b"), -1)
}

// Attempts bounds how often a transaction runs that others are always ahead of.
func TestAttempts(t *testing.T) {
	w := newWorld(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), x, 10))
	rig.Is(t, s.create(t.Context(), y, 10))
	peer := openPeer(t, w).stores["optimistic"]
	runs := 0
	err := txn.Config{Attempts: 3}.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		if err := s.in(tx).add(ctx, x, 1); err != nil {
			return err
		}
		if err := s.in(tx).add(ctx, y, 1); err != nil {
			return err
		}
		return peer.add(t.Context(), y, 1)
	})
	rig.Is(t, err, repo.ErrConflict)
	var conflict *repo.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != key(y) || conflict.Attempts != 3 || runs != 3 {
		t.Errorf("%d runs, conflict %+v", runs, conflict)
	}
	has(t, s, x, 10)
}

// An operation that is from nowhere is refused, and not run without an id.
func TestAnOperationThatIsNotFromOnce(t *testing.T) {
	for _, none := range []*txn.Operation{nil, {}, (&txn.Operation{}).WithFingerprint([]byte("x"))} {
		rig.Is(t, none.Run(t.Context(), func(context.Context, *txn.Tx) error { return nil }), repo.ErrConfig)
		rig.Equal(t, none.Repeated(), false, "repeated")
	}
}

// Of an error that comes from what was never there at one moment nothing is heard.
func TestErrorsOfOneMoment(t *testing.T) {
	w := newWorld(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), x, 10))
	rig.Is(t, s.create(t.Context(), y, 0))
	peer := openPeer(t, w)
	runs := 0
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		n, err := s.in(tx).get(ctx, y)
		if err != nil {
			return err
		}
		if runs == 1 { // all of x goes to y
			other := peer.stores["optimistic"]
			rig.Is(t, txn.Run(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
				return errors.Join(other.in(tx).add(ctx, x, -10), other.in(tx).add(ctx, y, 10))
			}))
		}
		m, err := s.in(tx).get(ctx, x)
		if err == nil && n+m != 10 {
			return errStop
		}
		return err
	})
	rig.Is(t, err)
	rig.Equal(t, runs, 2, "runs")
}

// forgetful sends a transaction under a token of its own before it sends it as it
// is: the second finds the work of the first.
type forgetful struct{ *dynamodb.Client }

func (f forgetful) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	first := *in
	first.ClientRequestToken = nil
	if _, err := f.Client.TransactWriteItems(ctx, &first); err != nil {
		return nil, err
	}
	return f.Client.TransactWriteItems(ctx, in, o...)
}

// Where the service does not know the token any more, the items tell by the
// transaction's id that it was applied.
func TestEvidenceInTheItems(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(rig.Must(repo.NewTable[counted](forgetful{w.Client}, w.Table+"-o", repo.TableConfig{}))(t), optimistic.Config{}))(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), x, 10))
	rig.Is(t, s.create(t.Context(), y, 10))
	runs := 0
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		for _, id := range []string{x, y} {
			if _, err := r.In(tx).Update(ctx, key(id), func(_ context.Context, c *counted) error { c.N++; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	rig.Is(t, err)
	rig.Equal(t, runs, 1, "runs")
	has(t, s, x, 11)
	has(t, s, y, 11)
}

// tagged is a client that cannot be compared with another one.
type tagged struct {
	*dynamodb.Client
	tags []string
}

// A client may be of any kind: its items are in one transaction, also after a conflict.
func TestAClientThatCannotBeCompared(t *testing.T) {
	w := newWorld(t)
	items := rig.Must(repo.NewTable[counted](tagged{Client: w.Client, tags: []string{"a"}}, w.Table+"-o", repo.TableConfig{}))(t)
	r := rig.Must(optimistic.New(items, optimistic.Config{}))(t)
	x, y := w.id("x"), w.id("y")
	for _, id := range []string{x, y} {
		rig.Is(t, w.stores["optimistic"].create(t.Context(), id, 10))
	}
	runs := 0
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range []string{x, y} {
			if _, err := r.In(tx).Update(ctx, key(id), func(_ context.Context, c *counted) error { c.N++; return nil }); err != nil {
				return err
			}
		}
		if runs++; runs == 1 {
			rig.Is(t, w.stores["optimistic"].add(txn.Outside(ctx), x, 1))
		}
		return nil
	}))
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
	has(t, w.stores["optimistic"], x, 12)
	has(t, w.stores["optimistic"], y, 11)
}
