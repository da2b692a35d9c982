package single_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// held is a call under a lock that is taken by the same process.
func held(do func(context.Context, *lockedread.Held[account], account) error) func(*testing.T, table) func(context.Context, account) error {
	return func(t *testing.T, on table) func(context.Context, account) error {
		l := rig.Must(lockedread.New(on, lockedread.Config{}))(t)
		return func(ctx context.Context, was account) error {
			h, err := l.Acquire(ctx, fixture.Key)
			if err != nil {
				return err
			}
			return do(ctx, h, was)
		}
	}
}

// ends are the calls that end a lock without a change, or extend it: what they leave of
// the item is as it was.
func ends() []call {
	return []call{
		{name: "lockedread.Commit", locks: true, open: held(func(ctx context.Context, h *lockedread.Held[account], was account) error {
			was.Balance++
			_, err := h.Commit(ctx, was)
			return err
		})},
		{name: "lockedread.Delete", locks: true, deletes: true, open: held(func(ctx context.Context, h *lockedread.Held[account], _ account) error {
			return h.Delete(ctx)
		})},
		{name: "lockedread.Release", locks: true, open: held(func(ctx context.Context, h *lockedread.Held[account], _ account) error {
			return h.Release(ctx)
		})},
		{name: "lockedread.Extend", locks: true, open: held(func(ctx context.Context, h *lockedread.Held[account], _ account) error {
			return h.Extend(ctx)
		})},
		{name: "lockedread.Break", locks: true, open: func(t *testing.T, on table) func(context.Context, account) error {
			l := rig.Must(lockedread.New(on, lockedread.Config{}))(t)
			return func(ctx context.Context, _ account) error {
				h, err := l.Acquire(ctx, fixture.Key)
				if err != nil {
					return err
				}
				return l.Break(ctx, fixture.Key, h.Token())
			}
		}},
	}
}

// Writes that are refused for a reason that is none of the item's, and all that is sent
// again: the item tells whether a copy was applied before; where it cannot be read nobody
// knows.
func TestDenied(t *testing.T) {
	for _, c := range append(calls(), ends()...) {
		for _, code := range []string{"ThrottlingException", "AccessDeniedException", "TransactionConflictException"} {
			for _, applied := range []bool{false, true} {
				for _, unread := range []bool{false, true} {
					name := c.name + "/" + code
					if applied {
						name += "/a copy applied"
					}
					want := map[bool]repo.Verdict{false: repo.NotWritten, true: repo.Written}[applied]
					if unread {
						name, want = name+"/not to be read", repo.Unknown
					}
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						c.denied(t, &fault.Denials{Code: code, Applied: applied, Unread: unread}, want)
					})
				}
			}
		}
	}
}

// denied sends a call whose write is refused.
func (c call) denied(t *testing.T, no *fault.Denials, want repo.Verdict) {
	w := newWorld(t, c)
	if c.locks {
		no.Nth = 1 // behind the acquire
	}
	if strings.HasPrefix(c.name, "optimistic.") && c.deletes && no.Applied {
		want = repo.Unknown // what is gone does not tell who has removed it
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	no.Enough = cancel
	if _, err := w.mine.Get(ctx, fixture.Key); !c.makes { // its credentials have been good before
		rig.Is(t, err)
	}
	w.copier.On(no.Pass)
	err := w.run(ctx, w.was)
	w.copier.On(nil)
	if !no.Denied() {
		t.Fatal("nothing was refused")
	}
	told, truth := repo.VerdictOf(err), map[bool]repo.Verdict{false: repo.NotWritten, true: repo.Written}[no.Applied]
	if c.command != nil && want == repo.Unknown && told == truth {
		return // a look beside its slow write was there before the refusals, and has seen what became of it
	}
	rig.Equal(t, told, want, "told (%v)", err)
}
