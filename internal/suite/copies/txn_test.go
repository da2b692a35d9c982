package copies_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/repo"
)

// commitMoment is when the copy of a commit is delivered, and what the caller sees.
type commitMoment struct {
	name string
	// act is the network of a cell, from its first request on; after runs when the call
	// has ended.
	act func(w *txnCell) (after func())
	// limit says where the documents promise nothing (docs/limits.md).
	limit func(c transaction) bool
	open  bool // nothing tells what became of the call, as nothing that it sent is answered
}

func noLimit(transaction) bool { return false }

// firstCommit acts in the place of the first commit.
func firstCommit(w *txnCell, act func(one *fault.Copy) (*http.Response, error)) {
	seen, commits := false, w.commits()
	var mu sync.Mutex
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		mu.Lock()
		hit := !seen && commits(one)
		seen = seen || hit
		mu.Unlock()
		if !hit {
			return nil, nil
		}
		return act(one)
	})
}

// meets says that the first delivery met others, after something.
func meets(code string, nth int, delivered bool, between func(w *txnCell)) func(w *txnCell) func() {
	return func(w *txnCell) func() {
		firstCommit(w, func(one *fault.Copy) (*http.Response, error) {
			if delivered {
				deliverIn(w, one)
			}
			between(w)
			return one.Met(code, nth), nil
		})
		return func() {}
	}
}

func deliverIn(w *txnCell, one *fault.Copy) {
	resp, err := one.Deliver()
	if err != nil {
		w.t.Error(err)
		return
	}
	_ = resp.Body.Close()
}

// lateCommit delivers copies when the call has ended, after something.
func lateCommit(before func(w *txnCell, one *fault.Copy)) func(w *txnCell) func() {
	return func(w *txnCell) func() {
		sent := w.net.Keep(w.commits())
		return func() {
			for _, one := range sent() {
				before(w, one)
				deliverIn(w, one)
			}
		}
	}
}

// lapse makes a copy one whose token the service has forgotten.
func lapse(one *fault.Copy) {
	var sent struct{ ClientRequestToken string }
	if json.Unmarshal(one.Body, &sent) == nil && sent.ClientRequestToken != "" {
		one.Body = bytes.Replace(one.Body, []byte(sent.ClientRequestToken), []byte(rand.Text()), 1)
	}
}

func nothing(*txnCell) {}

func commitMoments() []commitMoment {
	ten := func(w *txnCell) { w.others(10) }
	// A single write has no token. What it leaves is out of sight behind ten others, and if it
	// has not read the item nothing tells it from one that came too late.
	single := func(c transaction) bool { return len(c.ops) == 1 && (c.ops[0].blind || c.ops[0].makes || c.saves) }
	applies := func(c transaction) bool { return len(c.ops) == 1 && c.ops[0].blind }
	return []commitMoment{
		{"the second answer is seen", func(w *txnCell) func() {
			w.net.Twice(w.commits(), 0, func() {})
			return func() {}
		}, noLimit, false},
		{"the second answer is seen, behind ten writes of others", func(w *txnCell) func() {
			w.net.Twice(w.commits(), 0, func() { ten(w) })
			return func() {}
		}, single, false},
		{"applied, and a conflict is seen", meets("TransactionConflict", 0, true, nothing), noLimit, false},
		{"applied, and a conflict is seen, behind ten writes of others", meets("TransactionConflict", 0, true, ten), single, false},
		{"applied, and throttling of a part is seen", meets("ThrottlingError", 0, true, nothing), noLimit, false},
		{"applied, and throttling is seen, behind ten writes of others", meets("ProvisionedThroughputExceededException", 0, true, ten), single, false},
		{"a conflict is seen, and the copy comes before the next", func(w *txnCell) func() {
			var kept *fault.Copy
			commits := w.commits()
			var mu sync.Mutex
			w.net.On(func(one *fault.Copy) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case !commits(one):
					return nil, nil
				case kept == nil:
					kept = one
					return one.Met("TransactionConflict", 0), nil
				}
				deliverIn(w, kept)
				return nil, nil
			})
			return func() {}
		}, noLimit, false},
		{"applied, and conflicts are seen to the end", func(w *txnCell) func() { return conflictsIn(w, true) }, noLimit, true},
		{"conflicts are seen to the end, and the copy comes behind it", func(w *txnCell) func() { return conflictsIn(w, false) }, noLimit, true},
		{"behind the call", lateCommit(func(*txnCell, *fault.Copy) {}), noLimit, false},
		{"behind the call and ten writes of others", lateCommit(func(w *txnCell, _ *fault.Copy) { ten(w) }), applies, false},
		{"behind the call, when the token has lapsed", lateCommit(func(_ *txnCell, one *fault.Copy) { lapse(one) }), noLimit, false},
		{"behind the call and ten writes of others, when the token has lapsed", lateCommit(func(w *txnCell, one *fault.Copy) { ten(w); lapse(one) }), func(c transaction) bool {
			return c.unbound() && !c.has(func(o txnOp) bool { return o.makes })
		}, false},
		{"behind the call and a deletion, when the token has lapsed", lateCommit(func(w *txnCell, one *fault.Copy) {
			for i, o := range w.ops {
				if !o.held && o.name != "nolock Update" {
					_ = w.peer.o.Delete(w.t.Context(), thingKey(w.ids[i]))
				}
			}
			lapse(one)
		}), func(c transaction) bool {
			return !c.has(func(o txnOp) bool { return !o.makes }) || len(c.ops) == 1 && c.ops[0].gone
		}, false},
	}
}

// conflictsIn answers every commit with a conflict; the first is delivered at once, or when
// the call has ended.
func conflictsIn(w *txnCell, atOnce bool) (after func()) {
	w.cfg.Attempts = 3
	w.cfg.Wait = repo.Wait{Min: time.Millisecond, Max: time.Millisecond}
	var kept []*fault.Copy
	var mu sync.Mutex
	commits := w.commits()
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if !commits(one) {
			return nil, nil
		}
		if atOnce && len(kept) == 0 {
			deliverIn(w, one)
		}
		kept = append(kept, one)
		return one.Met("TransactionConflict", 0), nil
	})
	return func() {
		if !atOnce {
			for _, one := range kept {
				deliverIn(w, one)
			}
		}
	}
}

// TestTransactions: every call at every moment.
func TestTransactions(t *testing.T) {
	verdicts, limits := map[repo.Verdict]int{}, 0
	var mu sync.Mutex
	t.Run("cells", func(t *testing.T) {
		for _, m := range commitMoments() {
			for _, c := range transactions() {
				t.Run(c.name+": "+m.name, func(t *testing.T) {
					t.Parallel()
					w := newCell(t, c)
					after := m.act(w)
					err := w.run(t.Context())
					w.net.On(nil)
					verdict := repo.VerdictOf(err)
					early := w.applied()
					after()
					n := w.applied()
					mu.Lock()
					defer mu.Unlock()
					verdicts[verdict]++
					if m.limit(c) {
						limits++
						return
					}
					if wrong := map[repo.Verdict]bool{repo.Written: n != 1 && (early != 1 || !m.gone(c)), repo.NotWritten: n != 0, repo.Unknown: n > 1}[verdict]; wrong {
						t.Errorf("applied %d times, %d of them before the call ended, and %v: %v", n, early, verdict, err)
					}
					if verdict != repo.Written && !m.open && !c.vague() {
						t.Errorf("%v, although the items tell: %v", verdict, err)
					}
				})
			}
		}
	})
	t.Logf("%d calls at %d moments: written %d, not written %d, unknown %d; %d cells are limits", len(transactions()), len(commitMoments()),
		verdicts[repo.Written], verdicts[repo.NotWritten], verdicts[repo.Unknown], limits)
}

// gone reports whether others have deleted what the call has made.
func (m commitMoment) gone(transaction) bool {
	return m.name == "behind the call and a deletion, when the token has lapsed"
}
