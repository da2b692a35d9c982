package transaction

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// passOf wants the items that letters name.
func passOf(letters string) *pass {
	p := &pass{given: make(chan struct{})}
	for _, place := range letters {
		p.spots = append(p.spots, spot{"client", string(place)})
	}
	return p
}

func letters(passes []*pass) string {
	var all []string
	for _, p := range passes {
		one := ""
		for _, s := range p.spots {
			one += s.place
		}
		all = append(all, one)
	}
	return strings.Join(all, " ")
}

func TestWhoIsNext(t *testing.T) {
	for name, row := range map[string]struct{ taken, waiting, given, rest string }{
		"nobody waits":                      {"a", "", "", ""},
		"nothing is taken":                  {"", "ab", "ab", ""},
		"one of its items is":               {"b", "ab", "", "ab"},
		"others are":                        {"c", "ab", "ab", ""},
		"two that want the same":            {"", "ab bc", "ab", "bc"},
		"two that do not":                   {"", "ab cd", "ab cd", ""},
		"one that waits is passed over":     {"a", "ab bc", "bc", "ab"},
		"one goes that the next one is for": {"", "ab bc cd", "ab cd", "bc"},
	} {
		taken := passOf(row.taken).set()
		var waiting []*pass
		for _, w := range strings.Fields(row.waiting) {
			waiting = append(waiting, passOf(w))
		}
		given, rest := next(waiting, taken)
		if letters(given) != row.given || letters(rest) != row.rest {
			t.Errorf("%s: %q goes and %q waits, want %q and %q", name, letters(given), letters(rest), row.given, row.rest)
		}
		for _, p := range given {
			for _, s := range p.spots {
				if !taken[s] {
					t.Errorf("%s: %s is not taken", name, s.place)
				}
			}
		}
	}
}

// Who waits for two items is not passed over for good by those that want one of them.
func TestNobodyIsPassedOverForGood(t *testing.T) {
	taken := passOf("a").set() // never given back
	both, others := passOf("ab"), 0
	for ; others < 2*overtaken; others++ {
		given, _ := next([]*pass{both, passOf("b")}, taken)
		if len(given) == 0 {
			break
		}
		delete(taken, spot{"client", "b"})
	}
	if others != overtaken {
		t.Errorf("%d others went before it, want %d", others, overtaken)
	}
}

// A pass is waited for no longer than patience, and not behind the end of a context; and
// whatever became of the waiting, nothing is taken when all have gone.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admission{taken: map[spot]bool{}}
		wait := func(ctx context.Context) (*pass, time.Duration, bool) {
			began := time.Now()
			p, waited := a.ask(ctx, passOf("ab").spots)
			return p, time.Since(began), waited
		}
		first, took, waited := wait(t.Context())
		if took != 0 || waited || a.followed(first) {
			t.Errorf("the first waits for %v (%v)", took, waited)
		}
		second, took, waited := wait(t.Context())
		if took != patience || !waited || !a.followed(first) {
			t.Errorf("the second waits for %v (%v)", took, waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience/3)
		defer cancel()
		third, took, _ := wait(ctx)
		if took != patience/3 {
			t.Errorf("one whose context ends waits for %v", took)
		}
		other, waited := a.ask(t.Context(), []spot{{"another client", "a"}})
		if waited {
			t.Error("it waits for another client's item")
		}
		go func() { time.Sleep(patience / 2); a.end(first) }()
		fourth, took, _ := wait(t.Context()) // behind the second, whose turn it is
		if took != patience {
			t.Errorf("the fourth waits for %v", took)
		}
		for _, p := range []*pass{third, second, fourth, other} {
			a.end(p)
		}
		if len(a.taken)+len(a.waiting) > 0 {
			t.Errorf("left: %v taken, %d wait", a.taken, len(a.waiting))
		}
	})
}

// A transaction inside the closure of another one, which may have the pass that it would
// wait for, does not ask for one.
func TestAnInnerTransactionAsksForNone(t *testing.T) {
	if c := (&call{inner: true}); c.takePass(t.Context()) || c.pass != nil {
		t.Error("it has asked")
	}
}
