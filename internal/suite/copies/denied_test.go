package copies_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// kind is a column of the matrix of denials.
type kind struct {
	name            string
	applied, unread bool
	told            repo.Verdict
	alone           bool // no other write is refused
}

var kinds = []kind{
	{"not applied", false, false, repo.NotWritten, false},
	{"a copy applied", true, false, repo.Written, false},
	{"not applied, and not to be read", false, true, repo.Unknown, false},
	{"a copy applied, and not to be read", true, true, repo.Unknown, false},
	{"a copy applied, and all else goes on", true, false, repo.Written, true},
}

// The answers that refuse a request for a reason that has nothing to do with the item.
var codes = []string{"ThrottlingException", "AccessDeniedException", "ExpiredTokenException"}

// TestDenied is the matrix of answers that say nothing of the item.
func TestDenied(t *testing.T) {
	var sum tally
	t.Cleanup(func() { t.Logf("%d calls, %d cells", len(calls), sum.cells) })
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		for _, code := range codes {
			for _, k := range kinds {
				t.Run(fmt.Sprintf("%s/%s/%s", name, code, k.name), func(t *testing.T) {
					t.Parallel()
					for nth, more := 0, true; more && nth < 4; nth++ {
						more = calls[name].refusedUnjudged(t, code, k, nth)
						if more {
							sum.add(1, 1, false)
						}
					}
				})
			}
		}
	}
}

// holds is promised of a call that takes something for a lease: what may have been taken,
// and cannot be read, ends with that.
func holds(k kind, nth int) repo.Verdict {
	if nth == 0 && k.unread {
		return repo.NotWritten
	}
	return k.told
}

// takes is the same where another write follows before the caller has what it asks for, or
// what it is for: if that is refused, too, the call has given nothing.
func takes(k kind, nth int) repo.Verdict {
	if nth == 0 && !k.alone {
		return repo.NotWritten
	}
	return k.told
}

// gives is promised of a call that has given its caller nothing, whatever becomes of what
// it did for that.
func gives(kind, int) repo.Verdict { return repo.NotWritten }

// TestDeniedInTheQueue is the same of a lock that may be waited for: its request enters the
// queue.
func TestDeniedInTheQueue(t *testing.T) {
	for mode, promised := range map[mutex.Mode]func(kind, int) repo.Verdict{mutex.FailOpen: holds, mutex.FailClosed: nil} {
		c := call{open: locksBy(mode, (*mutex.Locker).Lock), denied: promised}
		for _, code := range codes {
			for _, k := range kinds {
				t.Run(fmt.Sprintf("%v/%s/%s", mode, code, k.name), func(t *testing.T) {
					t.Parallel()
					if !c.refusedUnjudged(t, code, k, 0) {
						t.Error("nothing was refused")
					}
				})
			}
		}
	}
}

// givesAtLast is the same of a call whose third write takes what it gives.
func givesAtLast(k kind, nth int) repo.Verdict {
	if nth == 2 || nth == 1 && k.alone {
		return holds(k, 0)
	}
	return gives(k, nth)
}

// untraced is promised where a row that is gone does not tell who has removed it.
func untraced(k kind, _ int) repo.Verdict {
	if k.applied {
		return repo.Unknown
	}
	return k.told
}

// wakes is promised of a call whose second write wakes others, and is no part of what it
// says.
func wakes(k kind, nth int) repo.Verdict {
	if nth > 0 {
		return repo.Written
	}
	return k.told
}

// wakesUntraced is the same, where a job that is gone may have been done.
func wakesUntraced(k kind, nth int) repo.Verdict {
	if nth == 0 && !k.applied {
		return repo.Unknown
	}
	return wakes(k, nth)
}

// refusedUnjudged refuses the nth write of a call, and all behind it. Whose context ends
// between two requests may be told less, in truth: on a busy machine it is tried again.
func (c call) refusedUnjudged(t *testing.T, code string, k kind, nth int) (more bool) {
	says := ""
	for range 3 {
		if more, says = c.refused(t, code, k, nth); says == "" {
			return more
		}
	}
	t.Error(says)
	return more
}

// refused is one try; says is what was told where it should not have been.
func (c call) refused(t *testing.T, code string, k kind, nth int) (more bool, says string) {
	p := newPlace(t)
	s := c.open(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	no := &fault.Denials{Nth: nth, Code: code, Applied: k.applied, Unread: k.unread, Alone: k.alone, Enough: cancel}
	before := ""
	if nth == 0 && !k.applied {
		before = contents(t, p.Table)
	}
	p.deny(no)
	err := s.do(ctx)
	p.deny(nil)
	if !no.Denied() {
		return false, ""
	}
	want := k.told
	if c.denied != nil {
		want = c.denied(k, nth)
	}
	if before != "" && before != contents(t, p.Table) {
		t.Errorf("write %d: something was applied", nth)
	}
	if told := repo.VerdictOf(err); told != want {
		return true, fmt.Sprintf("write %d: told %v (%v), want %v", nth, told, err, want)
	}
	return true, ""
}
