package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// Whoever reads a log with many tables needs both.
func TestErrorsNameTableAndKey(t *testing.T) {
	t.Parallel()
	for _, s := range fixture.Strategies() {
		t.Run(s.Name, func(t *testing.T) {
			f := fixture.New(t)
			r, ctx := s.Open(t, f, f.Client), t.Context()
			rig.Must(r.Create(ctx, fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
			fixed := func(_ context.Context, a *fixture.Account) error { a.Seq++; return nil }
			large := func(_ context.Context, a *fixture.Account) error { a.Note = strings.Repeat("x", 500<<10); return nil }
			for name, err := range map[string]error{
				"exists":    second(r.Create(ctx, fixture.Account{ID: "p", Seq: 1, At: 1})),
				"fixed":     second(r.Update(ctx, fixture.Key, fixed)),
				"too large": second(r.Update(ctx, fixture.Key, large)),
				"not found": second(r.Get(ctx, repo.Key{Partition: "p", Sort: 9})),
			} {
				if err == nil || !strings.Contains(err.Error(), f.Table) || !strings.Contains(err.Error(), `{"p" `) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func second[A any](_ A, err error) error { return err }

// A call that waited in vain says for whom, and for how long.
func TestAnEndedWaitSaysForWhatAndForHowLong(t *testing.T) {
	t.Parallel()
	waited := regexp.MustCompile(`waited for [0-9.]+m?s: .*context deadline exceeded`)
	for _, s := range fixture.Strategies() {
		t.Run(s.Name, func(t *testing.T) {
			f := fixture.New(t)
			rig.Must(rig.Must(optimistic.New(f.Items(t, f.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
			held := rig.Must(f.Locker(t, f.Client, lockedread.Config{Owner: "somebody"}).Acquire(t.Context(), fixture.Key))(t)
			t.Cleanup(func() { rig.Is(t, held.Release(context.Background())) })
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := s.Open(t, f, f.Client).Update(ctx, fixture.Key, fixture.AddOne)
			var locked *repo.LockedError
			if !errors.As(err, &locked) || locked.Table != f.Table || fmt.Sprint(locked.Key) != fmt.Sprint(fixture.Key) || locked.Owner != "somebody" ||
				!errors.Is(err, context.DeadlineExceeded) || !waited.MatchString(err.Error()) {
				t.Errorf("%v", err)
			}
		})
	}
}
