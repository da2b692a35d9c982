package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

// The same promises for every strategy: one table, one suite.

func TestCreateGetUpdateDelete(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		ctx, r := t.Context(), s.Open(t, w, w.Client)
		key := repo.Key{Partition: "p", Sort: 1}

		_, err := r.Get(ctx, key)
		rig.Is(t, err, repo.ErrNotFound)
		_, err = r.Update(ctx, key, func(context.Context, *fixture.Account) error { t.Error("change ran without an item"); return nil })
		rig.Is(t, err, repo.ErrNotFound)
		rig.Is(t, r.Delete(ctx, key), repo.ErrNotFound)

		made := rig.Must(r.Create(ctx, fixture.Account{ID: "p", Seq: 1, Balance: 5, At: 1, Tags: []string{"a"}}))(t)
		rig.Equal(t, made.Version, 1, "version of a new item is")
		_, err = r.Create(ctx, made)
		rig.Is(t, err, repo.ErrExists)
		got := rig.Must(r.Get(ctx, key))(t)
		if d := cmp.Diff(made, got); d != "" {
			t.Errorf("read differs from what was created:\n%s", d)
		}

		next := rig.Must(r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; a.Tags = nil; return nil }))(t)
		want := fixture.Account{ID: "p", Seq: 1, Balance: 6, At: 1, Version: 2}
		if d := cmp.Diff(want, next); d != "" {
			t.Errorf("result of Update:\n%s", d)
		}
		if d := cmp.Diff(want, rig.Must(r.Get(ctx, key))(t)); d != "" {
			t.Errorf("stored after Update:\n%s", d)
		}

		rig.Must(r.Update(ctx, key, func(context.Context, *fixture.Account) error { return fmt.Errorf("not wanted: %w", repo.Remove) }))(t)
		_, err = r.Get(ctx, key)
		rig.Is(t, err, repo.ErrNotFound)
		rig.Is(t, r.Delete(ctx, key), repo.ErrNotFound)

		again := rig.Must(r.Upsert(ctx, key, func(_ context.Context, a *fixture.Account) error {
			if d := cmp.Diff(fixture.Account{ID: "p", Seq: 1}, *a); d != "" {
				t.Errorf("Upsert begins with\n%s", d)
			}
			a.Balance, a.At = 9, 2
			return nil
		}))(t)
		rig.Equal(t, again.Balance, 9, "Upsert returned %+v", again)
		rig.Must(r.Upsert(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
		if got := rig.Must(r.Get(ctx, key))(t); got.Balance != 10 {
			t.Errorf("balance %d after two upserts, want 10", got.Balance)
		}
		if err := r.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
		_, err = r.Get(ctx, key)
		rig.Is(t, err, repo.ErrNotFound)
	})
}

func TestChangeThatFailsOrChangesNothing(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		ctx, r := t.Context(), s.Open(t, w, w.Client)
		key := repo.Key{Partition: "p", Sort: 1}
		rig.Must(r.Create(ctx, fixture.Account{ID: "p", Seq: 1, Balance: 5, At: 1}))(t)

		mine := errors.New("no funds")
		_, err := r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance = 0; return mine })
		rig.Is(t, err, mine)
		same := rig.Must(r.Update(ctx, key, func(context.Context, *fixture.Account) error { return nil }))(t)
		if same.Version != 1 || same.Balance != 5 {
			t.Errorf("a change that changes nothing wrote %+v", same)
		}

		for name, change := range map[string]func(*fixture.Account){
			"partition key": func(a *fixture.Account) { a.ID = "q" },
			"sort key":      func(a *fixture.Account) { a.Seq = 2 },
			"version":       func(a *fixture.Account) { a.Version = 7 },
		} {
			_, err := r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { change(a); return nil })
			if !errors.Is(err, repo.ErrFixed) {
				t.Errorf("change of the %s: %v, want ErrFixed", name, err)
			}
		}

		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want the change's own panic", p)
				}
			}()
			_, _ = r.Update(ctx, key, func(context.Context, *fixture.Account) error { panic("boom") })
		}()
		// Nothing stays locked after any of these.
		short, cancel := context.WithTimeout(ctx, 20*time.Second) // less than a lease
		defer cancel()
		got := rig.Must(r.Update(short, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
		if got.Balance != 6 || got.Version != 2 {
			t.Errorf("after failed changes: %+v", got)
		}
	})
}

func TestUnknownAttributesAreKept(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		ctx, r := t.Context(), s.Open(t, w, w.Client)
		key := repo.Key{Partition: "p", Sort: 1}
		raw := map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"},
			"balance": &types.AttributeValueMemberN{Value: "3"}, "at": &types.AttributeValueMemberN{Value: "1"},
			"other": &types.AttributeValueMemberS{Value: "mine"},
		}
		if _, err := w.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.Table, Item: raw}); err != nil {
			t.Fatal(err)
		}
		// An item from before the library: no version yet.
		got := rig.Must(r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
		if got.Balance != 4 || got.Version != 1 {
			t.Errorf("adopted item: %+v", got)
		}
		rig.Must(r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
		now := w.Raw(t, key)
		if v, ok := now["other"].(*types.AttributeValueMemberS); !ok || v.Value != "mine" {
			t.Errorf("attribute that the type does not know: %v", now["other"])
		}
		if now["lockedBy"] != nil || now["lockTime"] != nil || now["lockHeld"] != nil {
			t.Errorf("a lock stayed behind: %v", now)
		}
	})
}

func TestNoUpdateIsLostUnder64Goroutines(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		workers, each := int64(64), int64(rig.Share(1, 3))
		key := repo.Key{Partition: "hot", Sort: 1}
		repos := []repo.Repository[fixture.Account]{s.Open(t, w, w.Client), s.Open(t, w, rig.Client()), s.Open(t, w, rig.Client())}
		rig.Must(repos[0].Create(t.Context(), fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
		var done sync.WaitGroup
		var unknown sync.Map
		for i := range workers {
			done.Go(func() {
				for j := range each {
					id := fmt.Sprintf("%d-%d", i, j)
					_, err := repos[i%int64(len(repos))].Update(t.Context(), key, func(_ context.Context, a *fixture.Account) error {
						a.Balance++
						a.Ops = append(a.Ops, id)
						return nil
					})
					if errors.Is(err, repo.ErrOutcomeUnknown) {
						unknown.Store(id, true) // more than eight others wrote while this caller did not get the processor
					} else if err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		}
		done.Wait()
		got := rig.Must(repos[0].Get(t.Context(), key))(t)
		slices.Sort(got.Ops)
		want, rare := workers*each, 0
		for id := range unknown.Range {
			if rare++; rare > 4 {
				t.Errorf("%v is the fifth unknown outcome", id)
			}
			if !slices.Contains(got.Ops, id.(string)) {
				want--
			}
		}
		if n := int64(len(slices.Compact(got.Ops))); got.Balance != want || n != want || got.Version != want+1 {
			t.Errorf("balance %d, distinct operations %d, version %d after %d updates", got.Balance, n, got.Version, want)
		}
	})
}

func TestCreateHasOneWinner(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		var won atomic.Int32
		var done sync.WaitGroup
		for i := range 16 {
			done.Go(func() {
				_, err := r.Create(t.Context(), fixture.Account{ID: "one", Seq: 1, Balance: int64(i), At: 1})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, repo.ErrExists):
					t.Error(err)
				}
			})
		}
		done.Wait()
		rig.Equal(t, won.Load(), 1, "creates succeeded")
	})
}

func TestUpsertsOfOneNewItemAddUp(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		key := repo.Key{Partition: "new", Sort: 1}
		var done sync.WaitGroup
		for range 16 {
			done.Go(func() {
				_, err := r.Upsert(t.Context(), key, func(_ context.Context, a *fixture.Account) error { a.Balance++; a.At = 1; return nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if got := rig.Must(r.Get(t.Context(), key))(t); got.Balance != 16 {
			t.Errorf("balance %d after 16 upserts", got.Balance)
		}
	})
}

func TestFailedUpsertLeavesNoHusk(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		key := repo.Key{Partition: "husk", Sort: 1}
		mine := errors.New("no")
		_, err := r.Upsert(t.Context(), key, func(context.Context, *fixture.Account) error { return mine })
		rig.Is(t, err, mine)
		rig.Must(r.Upsert(t.Context(), key, func(context.Context, *fixture.Account) error { return repo.Remove }))(t)
		if raw := w.Raw(t, key); len(raw) != 0 {
			t.Errorf("left behind: %v", raw)
		}
	})
}

func TestStrategiesMixOnOneItem(t *testing.T) {
	w := fixture.New(t)
	key := repo.Key{Partition: "mix", Sort: 1}
	all := fixture.Strategies()
	var repos []repo.Repository[fixture.Account]
	for _, s := range all {
		repos = append(repos, s.Open(t, w, w.Client), s.Open(t, w, rig.Client()))
	}
	rig.Must(repos[0].Create(t.Context(), fixture.Account{ID: "mix", Seq: 1, At: 1}))(t)
	const workers, each = 24, 5
	var done sync.WaitGroup
	for i := range workers {
		done.Go(func() {
			for range each {
				_, err := repos[i%len(repos)].Update(t.Context(), key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil })
				if err != nil {
					t.Errorf("%s: %v", all[i%len(repos)/2].Name, err)
				}
			}
		})
	}
	done.Wait()
	got := rig.Must(repos[0].Get(t.Context(), key))(t)
	if got.Balance != workers*each || got.Version != workers*each+1 {
		t.Errorf("balance %d, version %d after %d mixed updates", got.Balance, got.Version, workers*each)
	}
}

func TestBadKeysAreRefusedBeforeAnythingIsSent(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		long := strings.Repeat("x", 2049)
		for name, key := range map[string]repo.Key{
			"zero":        {},
			"no sort":     {Partition: "p"},
			"empty":       {Partition: "", Sort: 1},
			"wrong type":  {Partition: 7, Sort: 1},
			"text sort":   {Partition: "p", Sort: "1"},
			"too long":    {Partition: long, Sort: 1},
			"not UTF-8":   {Partition: "a\xff", Sort: 1},
			"nil pointer": {Partition: (*string)(nil), Sort: 1},
		} {
			nop := func(context.Context, *fixture.Account) error { return nil }
			_, err := r.Get(t.Context(), key)
			_, err2 := r.Update(t.Context(), key, nop)
			_, err3 := r.Upsert(t.Context(), key, nop)
			for _, err := range []error{err, err2, err3, r.Delete(t.Context(), key)} {
				if !errors.Is(err, repo.ErrKey) {
					t.Errorf("%s: %v, want ErrKey", name, err)
				}
			}
		}
		_, err := r.Create(t.Context(), fixture.Account{Balance: 1, At: 1})
		rig.Is(t, err, repo.ErrKey)
		rig.Equal(t, w.Count.Total(), 0, "requests were sent")
	})
}

func TestAnItemThatBecomesTooLargeIsRefused(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		ctx, key := t.Context(), repo.Key{Partition: "big", Sort: 1}
		_, err := r.Create(ctx, fixture.Account{ID: "big", Seq: 1, At: 1, Note: strings.Repeat("x", 409_000)})
		rig.Is(t, err, repo.ErrTooLarge)
		rig.Must(r.Create(ctx, fixture.Account{ID: "big", Seq: 1, At: 1}))(t)
		_, err = r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Note = strings.Repeat("x", 409_000); return nil })
		rig.Is(t, err, repo.ErrTooLarge)
		rig.Must(r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Note = strings.Repeat("x", 400_000); return nil }))(t)
		got := rig.Must(r.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
		if got.Balance != 1 || len(got.Note) != 400_000 {
			t.Errorf("balance %d, a note of %d bytes", got.Balance, len(got.Note))
		}
	})
}

func TestMissingTableAndOtherKeys(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		missing := fixture.Empty(t)
		r := s.Open(t, missing, w.Client)
		_, err := r.Get(t.Context(), repo.Key{Partition: "p", Sort: 1})
		rig.Is(t, err, repo.ErrNoTable)
		_, err = r.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1})
		rig.Is(t, err, repo.ErrNoTable)
		_, err = r.Update(t.Context(), repo.Key{Partition: "p", Sort: 1}, func(context.Context, *fixture.Account) error { return nil })
		rig.Is(t, err, repo.ErrNoTable)

		other := fixture.Empty(t)
		_, err = w.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &other.Table, BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("other"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("other"), AttributeType: types.ScalarAttributeTypeS}},
		})
		if err != nil {
			t.Fatal(err)
		}
		r = s.Open(t, other, w.Client)
		_, err = r.Update(t.Context(), repo.Key{Partition: "p", Sort: 1}, func(context.Context, *fixture.Account) error { return nil })
		rig.Is(t, err, repo.ErrSchema)
		rig.Is(t, other.Items(t, w.Client).EnsureTable(t.Context()), repo.ErrSchema)
	})
}
