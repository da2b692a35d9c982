package nolock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

type order struct {
	ID     string         `dynamodbav:"id" repo:"pk"`
	Status string         `dynamodbav:"status,omitempty"`
	Visits int            `dynamodbav:"visits,omitempty"`
	Meta   map[string]int `dynamodbav:"meta,omitempty"`
	At     int64          `dynamodbav:"at" repo:"eventtime"`
	Event  string         `dynamodbav:"event,omitempty" repo:"eventid"`
}

var key = repo.Key{Partition: "o1"}

func TestMain(m *testing.M) { rig.Main(m) }

func open[T any](t *testing.T, cfg nolock.Config) (*nolock.Repository[T], *repo.Table[T], *dynamodb.Client) {
	t.Helper()
	b := rig.New(t)
	table := rig.Must(repo.NewTable[T](b.Client, b.Table, repo.TableConfig{AnyAttribute: true}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	r := rig.Must(nolock.New(table, cfg))(t)
	if r.Table() != table {
		t.Error("the repository has another table than the one it was made of")
	}
	return r, table, b.Client
}

func wantStatus(t *testing.T, r *nolock.Repository[order], want string) {
	t.Helper()
	got, err := r.Get(t.Context(), key)
	if err != nil || got.Status != want {
		t.Errorf("status %q, %v; want %q", got.Status, err, want)
	}
}

func TestLatestEventWins(t *testing.T) {
	r, _, _ := open[order](t, nolock.Config{})
	for _, c := range []struct {
		event order
		want  error
		then  string
	}{
		{order{ID: "o1", Status: "paid", At: 20, Event: "b"}, nil, "paid"},
		{order{ID: "o1", Status: "placed", At: 10, Event: "a"}, repo.ErrStale, "paid"},
		{order{ID: "o1", Status: "paid again", At: 20, Event: "b"}, nil, "paid"}, // a redelivered duplicate
		{order{ID: "o1", Status: "tie lost", At: 20, Event: "a"}, repo.ErrStale, "paid"},
		{order{ID: "o1", Status: "tie won", At: 20, Event: "c"}, nil, "tie won"},
		{order{ID: "o1", Status: "sent", At: 30, Event: "a"}, nil, "sent"},
	} {
		err := r.Put(t.Context(), c.event)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.event, err, c.want)
		}
		wantStatus(t, r, c.then)
	}
}

// An event without an id leaves none behind: that of the event before would win
// ties of another time.
func TestTheIDOfTheEventBeforeGoes(t *testing.T) {
	r, _, _ := open[order](t, nolock.Config{})
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", Status: "placed", At: 10, Event: "z"}))
	rig.Is(t, r.Apply(t.Context(), key, 11, expression.Set(expression.Name("status"), expression.Value("seen"))))
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", Status: "tie won", At: 11, Event: "a"}))
	wantStatus(t, r, "tie won")
}

func TestPartialChanges(t *testing.T) {
	r, _, _ := open[order](t, nolock.Config{Unit: time.Second})
	ctx := t.Context()
	visit := expression.Add(expression.Name("visits"), expression.Value(1)).Set(expression.Name("status"), expression.Value("seen"))
	for _, at := range []any{int64(10), 20, time.Unix(30, 0), nolock.Event{Time: 30, ID: "x"}} {
		if err := r.Apply(ctx, key, at, visit); err != nil { // one builder, used again and again
			t.Fatalf("%v: %v", at, err)
		}
	}
	rig.Is(t, r.Apply(ctx, key, 5, visit), repo.ErrStale)
	got, err := r.Get(ctx, key)
	if err != nil || got.Visits != 4 || got.Status != "seen" || got.At != 30 {
		t.Errorf("%+v, %v", got, err)
	}
	err = r.Apply(ctx, key, 40, expression.Set(expression.Name("meta"), expression.Value(map[string]int{"a": 1})))
	if err == nil {
		err = r.Apply(ctx, key, 41, expression.Set(expression.Name("meta.a"), expression.Name("meta.a").Plus(expression.Value(1))).Remove(expression.Name("status")))
	}
	if got, err2 := r.Get(ctx, key); err != nil || err2 != nil || got.Meta["a"] != 2 || got.Status != "" {
		t.Errorf("%+v, %v, %v", got, err, err2)
	}
	for _, attr := range []string{"id", "at", "event", "lockedBy", "expiresAt"} {
		err := r.Apply(ctx, key, 50, expression.Set(expression.Name(attr), expression.Value(1)))
		if !errors.Is(err, repo.ErrFixed) {
			t.Errorf("update of %q: %v, want ErrFixed", attr, err)
		}
	}
	rig.Is(t, r.Apply(ctx, key, "soon", visit), repo.ErrSchema)
	rig.Is(t, r.Apply(ctx, key, 1.5, visit), repo.ErrSchema)
	rig.Is(t, r.Apply(ctx, key, 60, expression.UpdateBuilder{}), repo.ErrConfig)
}

func TestTombstones(t *testing.T) {
	r, table, client := open[order](t, nolock.Config{})
	ctx := t.Context()
	put := func(at int64) error { return r.Put(ctx, order{ID: "o1", Status: "s", At: at, Event: "e"}) }
	rig.Is(t, put(10))
	rig.Is(t, r.Delete(ctx, key))
	rig.Is(t, r.Delete(ctx, key), repo.ErrNotFound)
	rig.Is(t, put(9), repo.ErrStale) // a late older event does not bring it back
	_, err := r.Get(ctx, key)
	rig.Is(t, err, repo.ErrNotFound)
	for item, err := range table.Query(ctx, "o1") {
		t.Errorf("query shows %+v, %v", item, err)
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(table.Name()), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "o1"}}})
	if err != nil || out.Item["expiresAt"] == nil || out.Item["status"] != nil {
		t.Errorf("tombstone %v, %v", out.Item, err)
	}
	rig.Is(t, put(11)) // a newer one does
	wantStatus(t, r, "s")

	rig.Is(t, r.DeleteAt(ctx, key, 5), repo.ErrStale)
	for range 2 { // a delete event, delivered twice
		rig.Is(t, r.DeleteAt(ctx, key, nolock.Event{Time: 20, ID: "d"}))
	}
	rig.Is(t, put(15), repo.ErrStale)
	_, err = r.Create(ctx, order{ID: "o1", At: 15})
	rig.Is(t, err, repo.ErrStale)
	if _, err = r.Create(ctx, order{ID: "o1", Status: "new", At: 21}); err != nil {
		t.Error(err)
	}
	wantStatus(t, r, "new")

	// The delete may come before the event that it deletes.
	early := repo.Key{Partition: "o2"}
	rig.Is(t, r.DeleteAt(ctx, early, 20))
	rig.Is(t, r.Put(ctx, order{ID: "o2", At: 10}), repo.ErrStale)
}

func TestEventsFromTheFuture(t *testing.T) {
	type timed struct {
		ID string    `dynamodbav:"id" repo:"pk"`
		At time.Time `dynamodbav:"at,unixtime" repo:"eventtime"`
	}
	r, _, _ := open[timed](t, nolock.Config{})
	now := time.Now().Truncate(time.Second)
	rig.Is(t, r.Put(t.Context(), timed{"a", now.Add(time.Minute)}))
	rig.Is(t, r.Put(t.Context(), timed{"a", now.Add(2 * time.Hour)}), nolock.ErrAhead)
	_, err := r.Update(t.Context(), repo.Key{Partition: "a"}, func(_ context.Context, v *timed) error { v.At = v.At.Add(3 * time.Hour); return nil })
	rig.Is(t, err, nolock.ErrAhead)
	_, err = r.Update(t.Context(), repo.Key{Partition: "a"}, func(_ context.Context, v *timed) error { v.At = v.At.Add(-time.Hour); return nil })
	rig.Is(t, err, repo.ErrStale)
}

// Two events of one second, cut to it, looked like one that came twice: the
// second was dropped, and acknowledged.
func TestEventTimesThatWouldBeCut(t *testing.T) {
	type timed struct {
		ID string    `dynamodbav:"id" repo:"pk"`
		At time.Time `dynamodbav:"at,unixtime" repo:"eventtime"`
	}
	r, _, _ := open[timed](t, nolock.Config{})
	ctx, key, when := t.Context(), repo.Key{Partition: "a"}, time.Unix(1_700_000_000, 100_000_000)
	late := func(_ context.Context, v *timed) error { v.At = when; return nil }
	note := expression.Set(expression.Name("note"), expression.Value("x"))
	for name, at := range map[string]time.Time{"with a fraction": when, "not set": {}} {
		when = at
		unix := attributevalue.UnixTime(when)
		rig.Is(t, r.Apply(ctx, key, unix, note), repo.ErrSchema)
		rig.Is(t, r.Put(ctx, timed{"a", when}), repo.ErrSchema)
		_, err := r.Create(ctx, timed{"a", when})
		rig.Is(t, err, repo.ErrSchema)
		_, err = r.Upsert(ctx, key, late)
		rig.Is(t, err, repo.ErrSchema)
		rig.Is(t, r.Apply(ctx, key, when, note), repo.ErrSchema)
		rig.Is(t, r.DeleteAt(ctx, key, when), repo.ErrSchema)
		if _, err := r.Get(ctx, key); !errors.Is(err, repo.ErrNotFound) {
			t.Errorf("%s: something was written: %v", name, err)
		}
	}
}

// An event whose time or id is beyond its field would leave an item that nobody can read.
func TestEventsThatTheTypeCannotReadBack(t *testing.T) {
	type narrow struct {
		ID string `dynamodbav:"id" repo:"pk"`
		N  int    `dynamodbav:"n"`
		At int32  `dynamodbav:"at" repo:"eventtime"`
		By uint16 `dynamodbav:"by" repo:"eventid"`
	}
	type exact struct {
		ID string `dynamodbav:"id" repo:"pk"`
		N  int    `dynamodbav:"n"`
		At int64  `dynamodbav:"at" repo:"eventtime"`
	}
	for name, at := range map[string]any{
		"a great time": int64(1) << 40, "a great id": nolock.Event{Time: 5, ID: 1 << 20}, "a negative id": nolock.Event{Time: 5, ID: -1}, "a fraction for an id": nolock.Event{Time: 5, ID: 1.5},
	} {
		t.Run(name, func(t *testing.T) { unreadable[narrow](t, at, nolock.Config{}) })
	}
	t.Run("long ago, in nanoseconds", func(t *testing.T) {
		unreadable[exact](t, time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC), nolock.Config{Unit: time.Nanosecond})
	})
}

// unreadable demands that all events of a time are refused, and nothing is written.
func unreadable[T any](t *testing.T, at any, cfg nolock.Config) {
	events, _, _ := open[T](t, cfg)
	set := expression.Set(expression.Name("n"), expression.Value(1))
	rig.Is(t, events.Apply(t.Context(), key, at, set), repo.ErrSchema)
	rig.Is(t, events.DeleteAt(t.Context(), key, at), repo.ErrSchema)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return events.In(tx).Apply(ctx, key, at, set) }), repo.ErrSchema)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return events.In(tx).DeleteAt(ctx, key, at) }), repo.ErrSchema)
	_, err := events.Get(t.Context(), key)
	rig.Is(t, err, repo.ErrNotFound)
}

func TestEventWritesWaitForALock(t *testing.T) {
	t.Parallel()
	b := rig.New(t)
	table := rig.Must(repo.NewTable[order](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	r := rig.Must(nolock.New(table, nolock.Config{Wait: repo.Wait{Min: time.Hour, Max: time.Hour}}))(t)
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", Status: "a", At: 2}))
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	h := rig.Must(locks.Acquire(t.Context(), key))(t)
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", At: 2})) // a duplicate need not wait
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", At: 1}), repo.ErrStale)
	// Long enough for a refusal to arrive: a context that ends before leaves a doubt.
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := r.Put(short, order{ID: "o1", Status: "b", At: 3})
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, err, context.DeadlineExceeded)
	rig.Is(t, h.Release(t.Context()))
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", Status: "b", At: 3}))
	wantStatus(t, r, "b")
}

// Attempts bounds how often a change runs that others are always ahead of.
func TestAttempts(t *testing.T) {
	r, table, _ := open[order](t, nolock.Config{Attempts: 3})
	other := rig.Must(nolock.New(table, nolock.Config{}))(t)
	rig.Must(r.Create(t.Context(), order{ID: "o1", At: 1}))(t)
	runs := 0
	_, err := r.Update(t.Context(), key, func(_ context.Context, o *order) error {
		runs++
		o.At = 1_000
		return other.Put(t.Context(), order{ID: "o1", At: int64(1 + runs)})
	})
	rig.Is(t, err, repo.ErrConflict)
	rig.Equal(t, runs, 3, "runs")
}

func TestSettings(t *testing.T) {
	table := rig.Must(repo.NewTable[order](dynamodb.New(dynamodb.Options{Region: "x"}), "table", repo.TableConfig{}))(t)
	for name, cfg := range map[string]nolock.Config{
		"negative unit":     {Unit: -1},
		"days forgotten":    {Tombstone: 15},
		"negative attempts": {Attempts: -1},
		"skew without unit": {MaxSkew: time.Hour},
		"tries, and none":   {FailLocked: true, Wait: repo.Wait{Attempts: 2}},
		"wait upside down":  {Wait: repo.Wait{Min: time.Second, Max: time.Millisecond}},
	} {
		if _, err := nolock.New(table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
	for _, none := range []*repo.Table[order]{nil, {}} {
		_, err := nolock.New(none, nolock.Config{})
		rig.Is(t, err, repo.ErrConfig)
	}
	type plain struct {
		ID string `repo:"pk"`
	}
	other := rig.Must(repo.NewTable[plain](dynamodb.New(dynamodb.Options{Region: "x"}), "table", repo.TableConfig{}))(t)
	_, err := nolock.New(other, nolock.Config{})
	rig.Is(t, err, repo.ErrSchema)
}
