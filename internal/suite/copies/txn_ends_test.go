package copies_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// busy answers each commit that others are at its items, or that there are too many
// requests; its caller leaves in the sleep behind the nth answer. Some are carried out all
// the same.
func busy(w *txnCell, code string, nth int, carried func(n int) bool, leave func()) (kept func() []*fault.Copy) {
	var mu sync.Mutex
	var all []*fault.Copy
	commits := w.commits()
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if !commits(one) {
			return nil, nil
		}
		if all = append(all, one); carried(len(all)) {
			deliverIn(w, one)
		}
		if len(all) == nth {
			time.AfterFunc(time.Millisecond, leave)
		}
		return one.Met(code, 0), nil
	})
	return func() []*fault.Copy {
		w.net.On(nil)
		return all
	}
}

// TestTransactionsThatEndBetweenAttempts: who leaves between two attempts is not told "not
// written" while a copy may come, whichever sleep it was.
func TestTransactionsThatEndBetweenAttempts(t *testing.T) {
	for _, c := range transactions() {
		for _, code := range []string{"TransactionConflict", "ThrottlingError", "ThrottlingException"} {
			t.Run(c.name+": "+code, func(t *testing.T) {
				t.Parallel()
				w := newCell(t, c)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				kept := busy(w, code, 1, func(int) bool { return false }, leave)
				err := w.run(ctx)
				for _, one := range kept() {
					deliverIn(w, one)
				}
				if n := w.applied(); n > 0 && repo.VerdictOf(err) != repo.Unknown {
					t.Errorf("applied by a copy, and told %v", err)
				}
			})
		}
	}
}

// TestTransactionsThatAreLookedAtAgain: what was looked at behind one attempt is looked at
// again behind the next, which may be applied, though its caller leaves.
func TestTransactionsThatAreLookedAtAgain(t *testing.T) {
	for _, c := range transactions() {
		if c.vague() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCell(t, c)
			w.cfg.Wait = repo.Wait{Min: 20 * time.Millisecond, Max: 20 * time.Millisecond}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			kept := busy(w, "TransactionConflict", 2, func(n int) bool { return n == 2 }, leave)
			err := w.run(ctx)
			if kept(); err != nil || w.applied() != 1 {
				t.Errorf("applied %d times, and told %v", w.applied(), err)
			}
		})
	}
}

// TestTransactionsThatLandBeforeTheirTurn: others refuse a commit until the transaction takes
// the lock of an item in its way, before which a copy of the commit may be applied. What the
// closure would find then, or return, is no verdict.
func TestTransactionsThatLandBeforeTheirTurn(t *testing.T) {
	for _, c := range transactions() {
		for at := range len(c.ops) + 1 {
			for _, lands := range []bool{true, false} {
				if !c.saves {
					t.Run(fmt.Sprintf("%s, at %d: %v", c.name, at, lands), func(t *testing.T) {
						t.Parallel()
						landsBefore(t, c, at, lands)
					})
				}
			}
		}
	}
}

// landsBefore refuses three commits, each by others at one item. Behind the last a copy
// lands, and a gate is shut that each run of the closure looks at first.
func landsBefore(t *testing.T, c transaction, at int, lands bool) {
	w := newCell(t, c)
	w.mine.o = rig.Must(optimistic.New(w.mine.o.Table(), optimistic.Config{Fair: true}))(t)
	gate := "gate" + w.ids[0]
	rig.Must(w.peer.o.Create(t.Context(), thing{ID: gate}))(t)
	var mu sync.Mutex
	var sent *fault.Copy
	commits := 0
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case one.Op == "TransactWriteItems" && commits < 3:
			sent, commits = one, commits+1
			return one.Met("TransactionConflict", at), nil
		case one.Op != "TransactWriteItems" && fault.Writes(one) && commits == 3 && lands:
			commits++
			deliverIn(w, sent)
			rig.Must(w.peer.o.Update(t.Context(), thingKey(gate), more))(t)
		}
		return nil, nil
	})
	shut := errors.New("the gate is shut")
	run := func(ctx context.Context, tx *txn.Tx) error {
		if is, err := w.mine.o.In(tx).Get(ctx, thingKey(gate)); err != nil || is.N > 0 {
			return errors.Join(err, shut)
		}
		for i, o := range w.ops {
			if err := o.do(ctx, w.mine, tx, w.ids[i]); err != nil {
				return err
			}
		}
		return nil
	}
	err := w.cfg.Run(t.Context(), run)
	w.net.On(nil)
	if n := w.applied(); n != 1 || err != nil {
		t.Errorf("applied %d times, and told %v", n, err)
	}
}
