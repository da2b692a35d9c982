package copies_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/repo"
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
