package copies_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/repo"
)

// The commit of a transaction, and all that is sent behind it, is refused for a reason that
// is none of the items': of a copy that came first that says nothing. What was applied is
// never told as not written, and what was not never as written.
func TestTransactionsDenied(t *testing.T) {
	told := map[repo.Verdict]int{}
	var mu sync.Mutex
	t.Run("cells", func(t *testing.T) {
		for _, c := range transactions() {
			for _, code := range codes {
				for _, k := range kinds {
					t.Run(c.name+"/"+code+"/"+k.name, func(t *testing.T) {
						t.Parallel()
						verdict := deniedCommit(t, c, code, k)
						mu.Lock()
						defer mu.Unlock()
						told[verdict]++
					})
				}
			}
		}
	})
	t.Logf("written %d, not written %d, unknown %d", told[repo.Written], told[repo.NotWritten], told[repo.Unknown])
}

func deniedCommit(t *testing.T, c transaction, code string, k kind) repo.Verdict {
	w := newCell(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	no := &fault.Denials{Code: code, Applied: k.applied, Unread: k.unread, Enough: cancel}
	read(ctx, w.mine, "nobody") // its credentials have been good before
	commits, begun := w.commits(), false
	var mu sync.Mutex
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		mu.Lock()
		begun = begun || commits(one)
		passes := !begun
		mu.Unlock()
		if passes {
			return nil, nil
		}
		return no.Pass(one)
	})
	err := w.run(ctx)
	w.net.On(nil)
	verdict := repo.VerdictOf(err)
	if n := w.applied(); n > 1 || (n == 1) != k.applied {
		t.Errorf("applied %d times", n)
	}
	if verdict != k.told && verdict != repo.Unknown {
		t.Errorf("told %v (%v), want %v", verdict, err, k.told)
	}
	return verdict
}
