package costs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// member is an item with an attribute that is unique.
type member struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Email   string `dynamodbav:"email" repo:"unique"`
	Note    string `dynamodbav:"note"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// costsOfUnique measures changes of unique values, of items of a size in KB.
func costsOfUnique(t *testing.T, size int) map[string]bill {
	w := fixture.Empty(t)
	m := &meter{w: w, c: &billed{Client: w.Client}}
	ctx, key := t.Context(), repo.Key{Partition: "p"}
	table := rig.Must(repo.NewTable[member](m.c, w.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(ctx))
	opt := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	pess := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	email := func(to string) func(context.Context, *member) error {
		return func(_ context.Context, c *member) error { c.Email = to; return nil }
	}
	note := strings.Repeat("x", (size-1)*1024+300)
	costs := map[string]bill{
		"`Create` with a `repo:\"unique\"` value": m.of(func() {
			rig.Must(opt.Create(ctx, member{ID: "p", Email: "a@x.org", Note: note}))(t)
		}),
		"`optimistic` `Update` of such a value":  m.of(func() { rig.Must(opt.Update(ctx, key, email("b@x.org")))(t) }),
		"`pessimistic` `Update` of such a value": m.of(func() { rig.Must(pess.Update(ctx, key, email("c@x.org")))(t) }),
	}
	note = strings.Repeat("y", len(note))
	alike := func(_ context.Context, c *member) error { c.Note = note; return nil }
	s := float64(size)
	if got, want := m.of(func() { rig.Must(opt.Update(ctx, key, alike))(t) }), (bill{2, s, float64((size + 3) / 4)}); got != want {
		t.Errorf("an optimistic change that leaves the value: %+v, not %+v", got, want)
	}
	note = strings.Repeat("z", len(note))
	if got, want := m.of(func() { rig.Must(pess.Update(ctx, key, alike))(t) }), (bill{2, 2 * s, 0}); got != want {
		t.Errorf("a pessimistic change that leaves the value: %+v, not %+v", got, want)
	}
	return costs
}
