package single_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// The write of a call under its lock has no answer, and was carried out or not. The
// release behind it is delivered twice, and the second answer is seen: that the lock is
// gone may be the release's own work.
func TestADoubledReleaseIsNoCommit(t *testing.T) {
	for _, c := range calls() {
		if !c.locks {
			continue
		}
		for _, applied := range []bool{false, true} {
			for between, others := range map[string]func(w *world){
				"at once": func(*world) {},
				"behind ten writes": func(w *world) {
					r := rig.Must(pessimistic.New(w.Items(t, rig.Client()), pessimistic.Config{}))(t)
					for range 10 {
						_, _ = r.Update(context.Background(), fixture.Key, func(_ context.Context, a *account) error { a.Note += "x"; return nil })
					}
				},
			} {
				t.Run(c.name+"/"+between+map[bool]string{true: ", applied"}[applied], func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, c)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w.releaseTwice(t, cancel, applied, others)
					err := w.run(ctx, w.was)
					w.copier.On(nil)
					n, verdict := w.applied(t, c), repo.VerdictOf(err)
					if verdict == repo.Written && n != 1 || verdict == repo.NotWritten && n != 0 {
						t.Errorf("applied %d times, and %v: %v", n, verdict, err)
					}
				})
			}
		}
	}
}

// releaseTwice delivers releases twice. The caller leaves with its first commit.
func (w *world) releaseTwice(t *testing.T, leave func(), applied bool, between func(w *world)) {
	var writes []string
	w.copier.On((&fault.DoubledReleases{
		Applied: applied,
		Is: func(one *fault.Copy) (commit, release bool) {
			if !fault.Writes(one) {
				return false, false
			}
			if writes = append(writes, string(one.Body)); len(writes) == 1 {
				return false, false // the acquire
			}
			commit = string(one.Body) == writes[1]
			return commit, !commit
		},
		Lost:    leave,
		Between: func() { between(w) },
		Failed:  func(err error) { t.Error(err) },
	}).Pass)
}
