package copies_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// accident is what happens to a write of a holder on its way.
type accident string

const (
	onceSent  accident = "one delivery"
	lost      accident = "a lost answer"
	copySeen  accident = "the copy's answer seen"
	comesLast accident = "a copy comes last"
)

// meanwhile is what others do to a hold, or behind it.
type meanwhile string

const (
	ownBroken meanwhile = "it is broken"
	ownTaken  meanwhile = "it is taken over"
	thenGone  meanwhile = "it is broken, and a later one is used"
	laterToo  meanwhile = "it is broken, and a later one too"
	bothTaken meanwhile = "it is taken over, and whoever did, too"
	others    meanwhile = "a later one is broken"
	othersDie meanwhile = "a later one is taken over"
	covered   meanwhile = "a later one is broken, and the next used"
	overdue   meanwhile = "its lease is over, and a later one is broken"
)

// doings are what happens, step by step: before the holder's write, or behind its first
// delivery, when the hold may be over.
var doings = map[meanwhile][]string{
	ownBroken: {"break"},
	ownTaken:  {"take over"},
	thenGone:  {"break", "use"},
	laterToo:  {"break", "take", "break"},
	bothTaken: {"take over", "take over"},
	others:    {"take", "break"},
	othersDie: {"take", "take over", "use"},
	covered:   {"take", "break", "use"},
	overdue:   {"take", "break", "use"},
}

// heldBy is a call of a holder, and what others can do about its hold.
type heldBy struct {
	p     *place
	do    func(ctx context.Context) error
	nth   int               // which of its writes meets the accident, from 0
	steps map[string]func() // those of doings, which do nothing where there is nothing to do
	keeps bool              // the call keeps the hold: that it is lost is what it says then
	// deletes: that the item is gone is the evidence, whoever has deleted it.
	deletes bool
}

// TestBehindABrokenHold is the matrix of what a holder is told where its hold, or a later
// one, was ended by others: what it says of its write is true, whatever the network did to
// that.
func TestBehindABrokenHold(t *testing.T) {
	var sum struct {
		sync.Mutex
		cells, unknown int
	}
	t.Cleanup(func() { t.Logf("%d calls, %d cells, of which %d unknown", len(ofHolders), sum.cells, sum.unknown) })
	for _, name := range slices.Sorted(maps.Keys(ofHolders)) {
		for _, what := range rig.Share([]meanwhile{ownBroken, ownTaken, covered, overdue}, slices.Sorted(maps.Keys(doings))) {
			for _, how := range []accident{onceSent, lost, copySeen, comesLast} {
				for _, first := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s/%s, %s, first %v", name, what, how, first), func(t *testing.T) {
						t.Parallel()
						told, cell := ofHolders[name](t, newPlace(t)).behind(t, what, how, first)
						if !cell {
							return
						}
						sum.Lock()
						defer sum.Unlock()
						if sum.cells++; told == repo.Unknown {
							sum.unknown++
						}
					})
				}
			}
		}
	}
}

// behind is one cell: first says that the others act before the first delivery of the
// write, else behind it.
func (h heldBy) behind(t *testing.T, what meanwhile, how accident, first bool) (told repo.Verdict, cell bool) {
	if !first && how == onceSent {
		return told, false // the call is told before
	}
	for _, step := range doings[what] {
		if h.steps[step] == nil {
			return told, false
		}
	}
	act := func() {
		for _, step := range doings[what] {
			h.steps[step]()
		}
	}
	applied, writes := 0, 0
	var kept *fault.Copy
	deliver := func(one *fault.Copy) (*http.Response, error) {
		before := contents(t, h.p.Table)
		resp, err := one.Deliver()
		transactions := one.Op == "TransactWriteItems" && kept.Op == "TransactWriteItems"
		same := transactions || bytes.Equal(one.Body, kept.Body)
		if same && contents(t, h.p.Table) != before { // else it is a copy that the service knows, or that says the same
			applied++
		}
		return resp, err
	}
	if what == overdue {
		h.p.later(time.Minute)
	}
	h.p.begin(nil)
	h.p.meet(func(one *fault.Copy) (*http.Response, error) {
		if !fault.Writes(one) {
			return nil, nil
		}
		if writes++; writes < h.nth+1 {
			return nil, nil
		}
		if writes > h.nth+1 {
			return deliver(one) // sent again
		}
		kept = one
		if first {
			act()
		}
		resp, err := deliver(one)
		if err != nil || how == onceSent || how == comesLast {
			return resp, err
		}
		if !first {
			act()
		}
		if how == lost {
			return nil, io.ErrUnexpectedEOF
		}
		return deliver(one)
	})
	err := h.do(t.Context())
	h.p.meet(nil)
	if told = repo.VerdictOf(err); kept == nil {
		rig.Equal(t, told, repo.NotWritten, "nothing was sent")
		return told, false
	}
	if h.keeps && errors.Is(err, repo.ErrLockLost) {
		return told, true // it says that the hold is over, and no more
	}
	if told == repo.Written && applied == 0 && !h.keeps && !h.deletes || told == repo.NotWritten && applied > 0 || applied > 1 {
		t.Errorf("told %v (%v), and applied %d times", told, err, applied)
	}
	if how == comesLast {
		if !first {
			act()
		}
		before := applied
		resp, err := deliver(kept)
		if err != nil {
			t.Fatal(err)
		}
		if rig.Is(t, resp.Body.Close()); applied > before {
			t.Errorf("a copy was applied last: %s", kept.Body)
		}
	}
	return told, true
}
