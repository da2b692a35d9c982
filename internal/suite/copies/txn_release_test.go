package copies_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// held are transactions that hold an item, which is the first.
func held() (all []transaction) {
	by := txnOps()
	update, deletes, reads := by["locked Update"], by["locked Update"], by["locked Update"]
	deletes.name, deletes.gone, deletes.do = "locked Delete", true, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		return s.p.In(tx).Delete(ctx, thingKey(id))
	}
	deletes.done = func(ctx context.Context, s *shop, id string) int {
		_, err := s.p.Get(ctx, thingKey(id))
		return map[bool]int{true: 1}[errors.Is(err, repo.ErrNotFound)]
	}
	reads.name, reads.done, reads.do = "locked Get", nil, func(ctx context.Context, s *shop, tx *txn.Tx, id string) error {
		_, err := s.p.In(tx).Get(ctx, thingKey(id))
		return err
	}
	for _, ops := range [][]txnOp{
		{update}, {update, by["Get"]}, {update, by["Update"]}, {update, update}, {update, by["Create"]}, {update, by["Apply"]},
		{reads, by["Update"]}, {reads, by["nolock Update"]}, {reads, by["Apply"]}, {reads, by["Delete"]},
		{deletes}, {deletes, by["Get"]}, {deletes, by["Update"]}, {deletes, update},
	} {
		c := transaction{ops: ops, name: ops[0].name}
		for _, o := range ops[1:] {
			c.name += ", " + o.name
		}
		all = append(all, c)
	}
	return all
}

// A commit has no answer, and was carried out or not. Each release behind it is delivered
// twice, and the second answer is seen: that the lock is gone may be the release's own work.
func TestADoubledReleaseIsNoCommit(t *testing.T) {
	for _, c := range held() {
		for between, others := range map[string]func(w *txnCell){
			"at once": nothing,
			"behind ten writes of others": func(w *txnCell) {
				ctx, cancel := context.WithTimeout(w.t.Context(), time.Second) // it may be that another item's lock has been released
				defer cancel()
				for range 10 {
					_ = w.ops[0].others(ctx, w.peer, w.ids[0])
				}
			},
		} {
			for _, applied := range []bool{false, true} {
				t.Run(c.name+"/"+between+map[bool]string{true: ", applied"}[applied], func(t *testing.T) {
					t.Parallel()
					w := newCell(t, c)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w.releaseTwice(ctx, cancel, applied, others)
					err := w.run(ctx)
					w.net.On(nil)
					n := w.applied()
					switch verdict := repo.VerdictOf(err); {
					case verdict == repo.Written && n != 1, verdict == repo.NotWritten && n != 0:
						t.Errorf("applied %d times, and %v: %v", n, verdict, err)
					case verdict == repo.Unknown && c.ops[0].name == "locked Update" && between == "at once":
						t.Errorf("the item tells, and %v", err)
					}
				})
			}
		}
	}
}

// releaseTwice delivers releases twice. The caller of a single item leaves with its
// commit; a release of one is told from its commit by the length.
func (w *txnCell) releaseTwice(ctx context.Context, leave func(), applied bool, between func(w *txnCell)) {
	commits, sent := w.commits(), 0
	w.net.On((&fault.DoubledReleases{
		Applied: applied,
		Is: func(one *fault.Copy) (commit, release bool) {
			several := len(w.ops) > 1
			release = fault.Writes(one) && one.Op != "TransactWriteItems" &&
				(several && sent > 0 || !several && ctx.Err() != nil && len(one.Body) < sent)
			if commit = !release && commits(one); commit {
				sent = len(one.Body)
			}
			return commit, release
		},
		Lost: func() {
			if len(w.ops) == 1 {
				leave()
			}
		},
		Between: func() { between(w) },
		Failed:  func(err error) { w.t.Error(err) },
	}).Pass)
}
