package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A deleted item does not come back by an older event, whoever brings it.
func TestUpsertRespectsTombstones(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		events := rig.Must(nolock.New(w.Items(t, w.Client), nolock.Config{}))(t)
		if err := events.DeleteAt(t.Context(), fixture.Key, 20); err != nil {
			t.Fatal(err)
		}
		at := func(n int64) func(context.Context, *fixture.Account) error {
			return func(_ context.Context, a *fixture.Account) error { a.At = n; return nil }
		}
		r := s.Open(t, w, w.Client)
		for _, old := range []int64{15, 20} { // the deletion's own time is not newer
			_, err := r.Upsert(t.Context(), fixture.Key, at(old))
			rig.Is(t, err, repo.ErrStale)
		}
		rig.Must(r.Upsert(t.Context(), fixture.Key, at(25)))(t)
		rig.Is(t, events.Put(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 22}), repo.ErrStale)
	})
}

// A Create in the place of a tombstone is refused where a later event has deleted the item
// again, behind what the Create has seen.
func TestACreateBehindALaterDeletion(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		events := rig.Must(nolock.New(w.Items(t, w.Client), nolock.Config{}))(t)
		rig.Is(t, events.DeleteAt(t.Context(), fixture.Key, 20))
		step := &rig.Intercept{Client: w.Client}
		step.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			if n == 2 { // the first finds the tombstone
				rig.Is(t, events.DeleteAt(t.Context(), fixture.Key, 40))
			}
			return send()
		}
		_, err := s.Open(t, w, step).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 30})
		rig.Is(t, err, repo.ErrStale)
	})
}

// What a tombstone keeps is not the new item's: its version counted on where
// the lock was handed on, and its event id stayed.
func TestANewItemAfterATombstone(t *testing.T) {
	t.Run("version", func(t *testing.T) {
		w := fixture.New(t)
		events := rig.Must(nolock.New(w.Items(t, w.Client), nolock.Config{}))(t)
		for at := range int64(6) {
			rig.Is(t, events.Put(t.Context(), fixture.Account{ID: "hot", Seq: 1, At: at + 1}))
		}
		rig.Is(t, events.DeleteAt(t.Context(), fixture.HotKey, int64(10)))
		r := rig.Must(pessimistic.New(w.Items(t, w.Client), pessimistic.Config{}))(t)
		var versions [2]int64
		upsert := func(c *fixture.Callers, i int) {
			versions[i] = rig.Must(r.Upsert(t.Context(), fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.At = 20; a.Balance++; c.First(); return nil }))(t).Version
		}
		c := fixture.CallersBehind(func(c *fixture.Callers) { upsert(c, 0) })
		c.Done.Go(func() { upsert(c, 1) })
		c.Gathered(t, 1)
		c.Done.Wait()
		rig.Equal(t, versions, [2]int64{1, 2}, "versions of two changes in a row")
	})
	type tied struct {
		ID  string `dynamodbav:"id" repo:"pk"`
		Seq int    `dynamodbav:"seq" repo:"sk"`
		At  int64  `dynamodbav:"at" repo:"eventtime"`
		By  string `dynamodbav:"by,omitempty" repo:"eventid"`
	}
	w := fixture.New(t)
	table := rig.Must(repo.NewTable[tied](w.Client, w.Table, repo.TableConfig{}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	for name, r := range map[string]repo.Repository[tied]{"nolock": events, "pessimistic": rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)} {
		t.Run("event id, "+name, func(t *testing.T) {
			key := repo.Key{Partition: name, Sort: 1}
			rig.Is(t, events.DeleteAt(t.Context(), key, nolock.Event{Time: 5, ID: "zz"}))
			told := rig.Must(r.Upsert(t.Context(), key, func(_ context.Context, x *tied) error { x.At = 9; return nil }))(t)
			rig.Equal(t, rig.Must(table.Get(t.Context(), key))(t), told, "told, stored")
			rig.Is(t, events.Put(t.Context(), tied{ID: name, Seq: 1, At: 9, By: "a"})) // newer than no id
		})
	}
}

// An event that sets the user's own TTL could never be applied to a tombstone.
func TestAnEventThatSetsTheTTLOfATombstone(t *testing.T) {
	type dated struct {
		ID   string `dynamodbav:"id" repo:"pk"`
		Seq  int    `dynamodbav:"seq" repo:"sk"`
		At   int64  `dynamodbav:"at" repo:"eventtime"`
		Ends int64  `dynamodbav:"expiresAt,omitempty"`
	}
	w := fixture.New(t)
	events := rig.Must(nolock.New(rig.Must(repo.NewTable[dated](w.Client, w.Table, repo.TableConfig{}))(t), nolock.Config{}))(t)
	rig.Is(t, events.DeleteAt(t.Context(), fixture.HotKey, 5))
	rig.Is(t, events.Apply(t.Context(), fixture.HotKey, 6, expression.Set(expression.Name("expiresAt"), expression.Value(4_000_000_000))))
	if got := rig.Must(events.Get(t.Context(), fixture.HotKey))(t); got.Ends != 4_000_000_000 {
		t.Errorf("stored %+v", got)
	}
}

// An event write leaves a TTL that is its user's.
func TestEventWritesKeepTheUsersTTL(t *testing.T) {
	type dated struct {
		ID   string `dynamodbav:"id" repo:"pk"`
		Seq  int    `dynamodbav:"seq" repo:"sk"`
		At   int64  `dynamodbav:"at" repo:"eventtime"`
		By   string `dynamodbav:"by,omitempty" repo:"eventid"`
		Ends int64  `dynamodbav:"expiresAt,omitempty"`
	}
	w := fixture.New(t)
	table := rig.Must(repo.NewTable[dated](w.Client, w.Table, repo.TableConfig{AnyAttribute: true}))(t)
	mine := rig.Must(nolock.New(table, nolock.Config{}))(t)
	if err := mine.Put(t.Context(), dated{ID: "p", Seq: 1, At: 1, By: "m", Ends: 4e9}); err != nil {
		t.Fatal(err)
	}
	set := expression.Set(expression.Name("note"), expression.Value("x"))
	if err := mine.Apply(t.Context(), fixture.Key, 2, set); err != nil {
		t.Fatal(err)
	}
	unaware := rig.Must(nolock.New(w.Items(t, w.Client), nolock.Config{}))(t)
	if err := unaware.Put(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 3}); err != nil {
		t.Fatal(err)
	}
	if got := rig.Must(mine.Get(t.Context(), fixture.Key))(t); got.Ends != 4e9 {
		t.Errorf("the TTL is %d", got.Ends)
	}
	// An id of another type than the field's poisons nothing and panics nowhere.
	rig.Is(t, mine.Apply(t.Context(), fixture.Key, nolock.Event{Time: 3, ID: 7}, set), repo.ErrSchema)
	rig.Is(t, mine.Apply(t.Context(), fixture.Key, nolock.Event{Time: 9, ID: struct{ A int }{1}}, set), repo.ErrSchema)
}

// An event time that is kept in seconds is checked where a user sets it: an item
// that has none yet can be changed, locked and deleted.
func TestItemsWithoutAnEventTime(t *testing.T) {
	type timed struct {
		ID      string    `dynamodbav:"id" repo:"pk"`
		Seq     int       `dynamodbav:"seq" repo:"sk"`
		N       int       `dynamodbav:"n"`
		At      time.Time `dynamodbav:"at,unixtime" repo:"eventtime"`
		Version int64     `dynamodbav:"version" repo:"version"`
	}
	w := fixture.New(t)
	ctx, key := t.Context(), repo.Key{Partition: "a", Sort: 1}
	table := rig.Must(repo.NewTable[timed](w.Client, w.Table, repo.TableConfig{}))(t)
	adopt := func() {
		_, err := w.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "a"}, "seq": &types.AttributeValueMemberN{Value: "1"}, "n": &types.AttributeValueMemberN{Value: "1"}}})
		rig.Is(t, err)
	}
	date := func(_ context.Context, v *timed) error { v.N++; v.At = time.Now().Truncate(time.Second); return nil }
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	for name, r := range map[string]repo.Repository[timed]{
		"nolock":                 events,
		"optimistic":             rig.Must(optimistic.New(table, optimistic.Config{}))(t),
		"optimistic, combining":  rig.Must(optimistic.New(table, optimistic.Config{Combine: true}))(t),
		"pessimistic, combining": rig.Must(pessimistic.New(table, pessimistic.Config{Combine: true}))(t),
	} {
		adopt()
		if got := rig.Must(r.Update(ctx, key, date))(t); got.N != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		adopt()
		rig.Is(t, r.Delete(ctx, key))
		if name != "nolock" {
			rig.Must(r.Upsert(ctx, repo.Key{Partition: name, Sort: 1}, date))(t)
		}
		_, err := r.Upsert(ctx, repo.Key{Partition: name, Sort: 2}, func(_ context.Context, v *timed) error { v.At = time.Unix(1, 1); return nil })
		rig.Is(t, err, repo.ErrSchema)
	}
}
