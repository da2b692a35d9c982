package optimistic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

type customer struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Name    string `dynamodbav:"name,omitempty"`
	Orders  int    `dynamodbav:"orders"`
	Version uint32 `dynamodbav:"version" repo:"version"`
}

var key = repo.Key{Partition: "c1"}

func TestMain(m *testing.M) { rig.Main(m) }

// Callers are held back on purpose: on a slow machine that takes longer than one waits
// behind a caller that does not move.
func init() { local.Patience = rig.Patience }

func open(t *testing.T, cfg optimistic.Config) (*optimistic.Repository[customer], *repo.Table[customer]) {
	t.Helper()
	b := rig.New(t)
	table := rig.Must(repo.NewTable[customer](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	return rig.Must(optimistic.New(table, cfg))(t), table
}

func TestSaveAndRemoveAreBoundToTheVersion(t *testing.T) {
	r, _ := open(t, optimistic.Config{})
	ctx := t.Context()
	first, err := r.Save(ctx, customer{ID: "c1", Name: "A"})
	if err != nil || first.Version != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	_, err = r.Save(ctx, customer{ID: "c1"})
	rig.Is(t, err, repo.ErrExists)
	first.Name = "" // left out when empty: must vanish from the item
	second, err := r.Save(ctx, first)
	if err != nil || second.Version != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	if got, err := r.Get(ctx, key); err != nil || got != second {
		t.Errorf("%+v, %v; want %+v", got, err, second)
	}
	_, err = r.Save(ctx, first)
	var conflict *repo.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != key {
		t.Errorf("stale save: %v", err)
	}
	rig.Is(t, r.Remove(ctx, first), repo.ErrConflict)
	rig.Is(t, r.Remove(ctx, second))
	rig.Is(t, r.Remove(ctx, second), repo.ErrNotFound)
	_, err = r.Save(ctx, second)
	rig.Is(t, err, repo.ErrNotFound)
}

// Items from before the library have no version, or version 0: whoever saves first counts
// it, and the others are refused.
func TestSaveTakesItemsFromBefore(t *testing.T) {
	r, table := open(t, optimistic.Config{})
	if r.Table() != table {
		t.Error("the repository has another table than the one it was made of")
	}
	ctx := t.Context()
	for _, version := range []types.AttributeValue{nil, &types.AttributeValueMemberN{Value: "0"}} {
		item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "old"}, "name": &types.AttributeValueMemberS{Value: "A"},
			"theirs": &types.AttributeValueMemberS{Value: "kept"}}
		if version != nil {
			item["version"] = version
		}
		name := table.Name()
		rig.Must(rig.Client().PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: item}))(t)
		old := rig.Must(r.Get(ctx, repo.Key{Partition: "old"}))(t)
		_, err := r.Create(ctx, old)
		rig.Is(t, err, repo.ErrExists)
		old.Name = "B"
		saved, err := r.Save(ctx, old)
		if err != nil || saved.Version != 1 || saved.Name != "B" {
			t.Fatalf("%+v, %v", saved, err)
		}
		_, err = r.Save(ctx, old)
		rig.Is(t, err, repo.ErrExists)
		got, err := r.Get(ctx, repo.Key{Partition: "old"})
		if err != nil || got != saved {
			t.Errorf("%+v, %v; want %+v", got, err, saved)
		}
	}
}

// What stands where the version should is no other version: to save the item again, as is
// done after a conflict, would end in the same for ever.
func TestAVersionThatIsNoneIsNoConflict(t *testing.T) {
	r, table := open(t, optimistic.Config{})
	ctx, name := t.Context(), table.Name()
	for _, version := range []types.AttributeValue{&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberS{Value: "1"}, &types.AttributeValueMemberN{Value: "1.5"}} {
		for _, given := range []uint32{0, 1} {
			item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "old"}, "version": version}
			rig.Must(rig.Client().PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: item}))(t)
			old := customer{ID: "old", Name: "B", Version: given}
			_, err := r.Save(ctx, old)
			rig.Is(t, err, repo.ErrSchema)
			rig.Is(t, r.Remove(ctx, old), repo.ErrSchema)
			rig.Is(t, txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return r.In(tx).Remove(ctx, old) }), repo.ErrSchema)
			rig.Is(t, txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := r.In(tx).Save(ctx, old)
				return err
			}), repo.ErrSchema)
		}
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	r, table := open(t, optimistic.Config{Attempts: 3})
	other := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	ctx := t.Context()
	rig.Must(r.Create(ctx, customer{ID: "c1"}))(t)
	runs := 0
	_, err := r.Update(ctx, key, func(_ context.Context, c *customer) error {
		runs++
		c.Orders++
		_, err := other.Save(ctx, customer{ID: "c1", Name: strings.Repeat("x", runs), Version: c.Version}) // somebody else, each time
		return err
	})
	var conflict *repo.ConflictError
	if !errors.As(err, &conflict) || conflict.Attempts != 3 || runs != 3 {
		t.Errorf("%v after %d runs", err, runs)
	}
}

func TestDeletedAndMadeAnewIsAnotherItem(t *testing.T) {
	r, table := open(t, optimistic.Config{})
	other := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	ctx := t.Context()
	rig.Must(r.Create(ctx, customer{ID: "c1", Orders: 1}))(t)
	first := true
	got, err := r.Update(ctx, key, func(_ context.Context, c *customer) error {
		if first {
			first = false
			if err := other.Delete(ctx, key); err != nil {
				return err
			}
			if _, err := other.Create(ctx, customer{ID: "c1", Orders: 100}); err != nil {
				return err
			}
		}
		c.Orders++
		return nil
	})
	if err != nil || got.Orders != 101 {
		t.Errorf("%+v, %v: the change of the old item was written to the new one", got, err)
	}
}

func TestLockedItems(t *testing.T) {
	waits, table := open(t, optimistic.Config{})
	fails := rig.Must(optimistic.New(table, optimistic.Config{FailLocked: true}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{Owner: "till"}))(t)
	ctx := t.Context()
	made := rig.Must(waits.Create(ctx, customer{ID: "c1"}))(t)
	h := rig.Must(locks.Acquire(ctx, key))(t)
	add := func(_ context.Context, c *customer) error { c.Orders++; return nil }
	_, err := fails.Update(ctx, key, add)
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "till" || locked.Token != h.Token() {
		t.Errorf("%v", err)
	}
	_, err = fails.Save(ctx, made)
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, fails.Remove(ctx, made), repo.ErrLocked)
	_, err = waits.Update(rig.Shortly(t), key, add)
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, err, context.DeadlineExceeded)

	done := make(chan error, 1)
	go func() { _, err := waits.Update(ctx, key, add); done <- err }()
	item := h.Item()
	item.Orders = 10
	rig.Must(h.Commit(ctx, item))(t)
	rig.Is(t, <-done)
	if got, err := waits.Get(ctx, key); err != nil || got.Orders != 11 || got.Version != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = fails.Save(ctx, made) // unlocked again, but overtaken
	rig.Is(t, err, repo.ErrConflict)
}

func TestSettings(t *testing.T) {
	_, table := open(t, optimistic.Config{})
	for name, cfg := range map[string]optimistic.Config{
		"negative attempts": {Attempts: -1},
		"negative wait":     {Wait: repo.Wait{Max: -1}},
		"tries, and none":   {FailLocked: true, Wait: repo.Wait{Attempts: 2}},
		"tries below none":  {FailLocked: true, Wait: repo.Wait{Attempts: -1}},
	} {
		if _, err := optimistic.New(table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
	// A greatest wait below the least one's default is a setting, no fault.
	if _, err := optimistic.New(table, optimistic.Config{Wait: repo.Wait{Max: time.Millisecond}}); err != nil {
		t.Error(err)
	}
	for _, none := range []*repo.Table[customer]{nil, {}} {
		_, err := optimistic.New(none, optimistic.Config{})
		rig.Is(t, err, repo.ErrConfig)
	}
	type plain struct {
		ID string `repo:"pk"`
	}
	other := rig.Must(repo.NewTable[plain](dynamodb.New(dynamodb.Options{Region: "x"}), "table", repo.TableConfig{}))(t)
	_, err := optimistic.New(other, optimistic.Config{})
	rig.Is(t, err, repo.ErrSchema)
}

// Others of the process wait behind a change: a throttled read or write does not sleep
// for as long as the client's policy would, but is tried again meanwhile.
func TestAThrottledChangeDoesNotSleepForSeconds(t *testing.T) {
	r, table := open(t, optimistic.Config{})
	rig.Must(r.Save(t.Context(), customer{ID: "c1"}))(t)
	for _, operation := range []string{"GetItem", "UpdateItem"} {
		throttle := 2 * retry.DefaultMaxAttempts
		client := rig.Client(rig.WithHoursBetweenAttempts, rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if op == operation && throttle > 0 {
				throttle--
				return fault.Throttle
			}
			return fault.None
		}))
		table := rig.Must(repo.NewTable[customer](client, table.Name(), repo.TableConfig{}))(t)
		busy := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
		rig.Must(busy.Update(t.Context(), key, func(_ context.Context, c *customer) error { c.Orders++; return nil }))(t)
		if throttle > 0 {
			t.Errorf("%s: %d refusals are left", operation, throttle)
		}
	}
	if got := rig.Must(r.Get(t.Context(), key))(t); got.Orders != 2 {
		t.Errorf("%+v", got)
	}
}
