package costs_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// TestRequestsOnTheWire counts, in the transport, what every operation sends.
// docs/performance.md quotes it.
func TestRequestsOnTheWire(t *testing.T) {
	w := fixture.New(t)
	client := w.Client
	table := w.Items(t, client)
	pess := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	opt := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	// Where others write, a table reads beside a write that takes four times as long as usual:
	// theirs is one of its own, whose usual is more than a busy machine takes.
	raced := w.Items(t, dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = late{o.HTTPClient, 50 * time.Millisecond} }))
	loser, other := rig.Must(optimistic.New(raced, optimistic.Config{}))(t), rig.Must(optimistic.New(raced, optimistic.Config{}))(t)
	event := rig.Must(nolock.New(table, nolock.Config{}))(t)
	locker := rig.Must(lockedread.New(table, lockedread.Config{Renew: true}))(t)
	ctx, key := t.Context(), repo.Key{Partition: "p", Sort: 1}
	at := int64(10)
	next := func() int64 { at++; return at }
	add := func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }
	type wire = map[string]int

	for _, c := range []struct {
		name string
		do   func() error
		want wire
	}{
		{"create", func() error { _, err := opt.Create(ctx, fixture.Account{ID: "p", Seq: 1, At: next()}); return err }, wire{"UpdateItem": 1}},
		{"get", func() error { _, err := opt.Get(ctx, key); return err }, wire{"GetItem": 1}},
		{"locked change", func() error { _, err := pess.Update(ctx, key, add); return err }, wire{"UpdateItem": 2}},
		{"locked change that changes nothing", func() error {
			_, err := pess.Update(ctx, key, func(context.Context, *fixture.Account) error { return nil })
			return err
		}, wire{"UpdateItem": 2}},
		{"optimistic change", func() error { _, err := opt.Update(ctx, key, add); return err }, wire{"GetItem": 1, "UpdateItem": 1}},
		{"optimistic change after one conflict", func() error {
			first := true
			_, err := loser.Update(ctx, key, func(change context.Context, a *fixture.Account) error {
				if first {
					first = false
					// Somebody else's, so not with the change's context: 2 of the requests.
					if _, err := other.Update(ctx, key, add); err != nil {
						return err
					}
				}
				return add(change, a)
			})
			return err
		}, wire{"GetItem": 2, "UpdateItem": 3}},
		{"save", func() error {
			a, err := opt.Get(ctx, key) // 1 of the requests
			if err == nil {
				_, err = opt.Save(ctx, a)
			}
			return err
		}, wire{"GetItem": 1, "UpdateItem": 1}},
		{"event write", func() error { return event.Put(ctx, fixture.Account{ID: "p", Seq: 1, At: next()}) }, wire{"UpdateItem": 1}},
		{"event write, duplicate", func() error { return event.Put(ctx, fixture.Account{ID: "p", Seq: 1, At: at}) }, wire{"UpdateItem": 1}},
		{"event write over a tombstone", func() error {
			if err := event.DeleteAt(ctx, key, next()); err != nil { // 1 of the requests
				return err
			}
			return event.Put(ctx, fixture.Account{ID: "p", Seq: 1, At: next()})
		}, wire{"UpdateItem": 3}},
		{"partial event write over a tombstone", func() error {
			if err := event.DeleteAt(ctx, key, next()); err != nil { // 1 of the requests
				return err
			}
			return event.Apply(ctx, key, next(), expression.Set(expression.Name("balance"), expression.Value(1)))
		}, wire{"UpdateItem": 3}},
		{"partial event write", func() error {
			return event.Apply(ctx, key, next(), expression.Add(expression.Name("balance"), expression.Value(1)))
		}, wire{"UpdateItem": 1}},
		{"acquire on a held item", func() error {
			h, err := locker.Acquire(ctx, key) // 1 of the requests
			if err != nil {
				return err
			}
			if _, err := locker.TryAcquire(ctx, key); err == nil {
				t.Error("a held lock was taken")
			}
			return h.Release(ctx) // and 1
		}, wire{"UpdateItem": 3}},
		{"locked delete", func() error { return pess.Delete(ctx, key) }, wire{"UpdateItem": 1, "DeleteItem": 1}},
		{"upsert of a new item, locked", func() error { _, err := pess.Upsert(ctx, key, add); return err }, wire{"UpdateItem": 3}},
	} {
		w.Count.Reset()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, w.Count.Counts()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		t.Logf("%-36s %v", c.name, w.Count.Counts())
	}
}
