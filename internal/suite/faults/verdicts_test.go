package faults_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// writesData reports whether a write carries a change of the balance.
func writesData(in *dynamodb.UpdateItemInput) bool {
	for _, name := range in.ExpressionAttributeNames {
		if name == "balance" {
			return true
		}
	}
	return false
}

// A second commit of other data does not inherit the success of the first.
func TestCommitAfterAnUnknownOne(t *testing.T) {
	w := fixture.New(t)
	h := &rig.Intercept{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.Items(t, h), pessimistic.Config{}))(t)
	rig.Must(locks.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	held := rig.Must(locks.Acquire(t.Context(), fixture.Key))(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		if n == 1 {
			if _, err := send(); err != nil {
				t.Error(err)
			}
			cancel()
		}
		return nil, rig.ErrNoAnswer
	}
	item := held.Item()
	item.Balance = 1
	_, err := held.Commit(ctx, item)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	h.Update = nil
	item.Balance = 2
	_, err = held.Commit(t.Context(), item)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
}

// An unknown outcome says nothing else, even if the call had waited for a lock.
func TestUnknownIsNotCalledLocked(t *testing.T) {
	w := fixture.New(t)
	h := &rig.Intercept{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.Items(t, w.Client), pessimistic.Config{}))(t)
	rig.Must(locks.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	held := rig.Must(locks.Acquire(t.Context(), fixture.Key))(t)
	ctx, cancel := context.WithCancel(t.Context())
	released := false
	h.Update = func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		cancel()
		return nil, rig.ErrNoAnswer
	}
	// The first read shows the lock; it is released while the call waits.
	h.Read = func(map[string]types.AttributeValue) {
		if !released {
			released = true
			rig.Is(t, held.Release(t.Context()))
		}
	}
	versions := rig.Must(optimistic.New(w.Items(t, h), optimistic.Config{}))(t)
	_, err := versions.Update(ctx, fixture.Key, fixture.AddOne)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	if errors.Is(err, repo.ErrLocked) {
		t.Errorf("also called locked: %v", err)
	}
}

// Numbers that were drawn during a long hold made the item look like another
// one, that was made anew under the same key.
func TestManyDrawsAreNotAnotherLife(t *testing.T) {
	drawn := func(t *testing.T, w *fixture.Fixture, held *lockedread.Held[fixture.Account]) {
		_, err := w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &w.Table,
			Key: rig.Must(w.Items(t, w.Client).EncodeKey(fixture.Key))(t), UpdateExpression: aws.String("SET lockToken = lockToken + :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "100001"}}})
		if err == nil {
			err = held.Extend(t.Context()) // as a renewal sees it
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w, h := fixture.NewWith(t, fixture.Key)
	l := w.Locker(t, h, lockedread.Config{Fair: true})
	held := rig.Must(l.Acquire(t.Context(), fixture.Key))(t)
	drawn(t, w, held)
	lost := false
	h.Update = func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if err == nil && !lost {
			lost = true
			return nil, rig.ErrNoAnswer
		}
		return out, err
	}
	item := held.Item()
	item.Balance = 7
	if _, err := held.Commit(t.Context(), item); err != nil {
		t.Errorf("one lost answer: %v", err)
	}
	h.Update = nil
	held = rig.Must(l.Acquire(t.Context(), fixture.Key))(t)
	drawn(t, w, held)
	if err := l.Break(t.Context(), fixture.Key, held.Token()); err != nil {
		t.Fatal(err)
	}
	rig.Is(t, held.Delete(t.Context()), repo.ErrLockLost)
}

// The release after a commit without a verdict knows it.
func TestAReleaseTellsWhatBecameOfTheCommit(t *testing.T) {
	for _, cfg := range []pessimistic.Config{{}, {Fair: true}, {Combine: true}} {
		for name, applied := range map[string]bool{"applied": true, "not applied": false} {
			t.Run(name, func(t *testing.T) {
				w, h := fixture.NewWith(t, fixture.Key)
				ctx, leave := context.WithCancel(t.Context())
				h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
					if !writesData(in) {
						return send()
					}
					if applied && ctx.Err() == nil {
						_, _ = send()
					}
					leave()
					return nil, rig.ErrNoAnswer
				}
				r := rig.Must(pessimistic.New(w.Items(t, h), cfg))(t)
				told, err := r.Update(ctx, fixture.Key, fixture.AddOne)
				got := rig.Must(r.Get(t.Context(), fixture.Key))(t)
				if errors.Is(err, repo.ErrOutcomeUnknown) || (err == nil) != (got.Balance == 1) || err == nil && told.Balance != 1 {
					t.Errorf("%+v: told %+v, %v; stored %+v", cfg, told, err, got)
				}
				if !applied {
					rig.Is(t, err, context.Canceled)
				}
			})
		}
	}
}

// Nor is a commit of nothing an error, whose answer is lost, and whose work the release finds.
func TestAReleaseBehindACommitOfNothing(t *testing.T) {
	w, h := fixture.NewWith(t, fixture.Key)
	ctx, leave := context.WithCancel(t.Context())
	h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if n == 2 || n == 3 { // behind the acquire: until the caller has left
			leave()
			return nil, rig.ErrNoAnswer
		}
		return out, err
	}
	r := rig.Must(pessimistic.New(w.Items(t, h), pessimistic.Config{}))(t)
	_, err := r.Update(ctx, fixture.Key, func(context.Context, *fixture.Account) error { return nil })
	rig.Is(t, err)
}

// An item whose lock cannot be read, after a lost answer, tells of the commit by its writers.
func TestAnUnreadableItemAfterALostAnswer(t *testing.T) {
	w, h := fixture.NewWith(t, fixture.Key)
	h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if err != nil || !writesData(in) {
			return out, err
		}
		if _, err := w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &w.Table, Key: in.Key, UpdateExpression: aws.String("SET lockTime = :x, lockedBy = :x"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":x": &types.AttributeValueMemberS{Value: "2026-01-01"}}}); err != nil {
			t.Error(err)
		}
		return nil, rig.ErrNoAnswer
	}
	r := rig.Must(pessimistic.New(w.Items(t, h), pessimistic.Config{}))(t)
	told, err := r.Update(t.Context(), fixture.Key, fixture.AddOne)
	rig.Is(t, err)
	rig.Equal(t, told.Balance, 1, "told")
}

// Others' writes, each of another process, cover what a transaction has left, and the last
// deletes the item, which leaves its tombstone: all count the version, so it shows that not
// all of them are in sight.
func TestATombstoneCountsTheVersion(t *testing.T) {
	f := fixture.New(t)
	deleteIn := func(ctx context.Context, r *nolock.Repository[fixture.Account], key repo.Key) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return r.In(tx).Delete(ctx, key) })
	}
	deleteAt := func(ctx context.Context, r *nolock.Repository[fixture.Account], key repo.Key) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			_, err := r.In(tx).Get(ctx, key)
			return errors.Join(err, r.In(tx).DeleteAt(ctx, key, 2))
		})
	}
	for name, deletes := range map[string]func(context.Context, *nolock.Repository[fixture.Account], repo.Key) error{
		"Delete": func(ctx context.Context, r *nolock.Repository[fixture.Account], key repo.Key) error {
			return r.Delete(ctx, key)
		},
		"Delete in a transaction": deleteIn, "DeleteAt in a transaction": deleteAt,
	} {
		t.Run(name, func(t *testing.T) {
			keys := []repo.Key{{Partition: name, Sort: 1}, {Partition: name, Sort: 2}}
			items := func() *repo.Table[fixture.Account] { return f.Items(t, rig.Client()) }
			client, net := rig.Copied()
			mine := rig.Must(optimistic.New(f.Items(t, client), optimistic.Config{}))(t)
			for n := range keys {
				rig.Must(mine.Create(t.Context(), fixture.Account{ID: name, Seq: n + 1, At: 1}))(t)
			}
			var once sync.Once
			net.On(func(one *fault.Copy) (*http.Response, error) {
				if one.Op != "TransactWriteItems" {
					return nil, nil
				}
				once.Do(func() {
					resp, err := one.Deliver()
					rig.Is(t, err)
					rig.Is(t, resp.Body.Close())
					rig.Equal(t, resp.StatusCode, http.StatusOK, "the commit's status")
					for _, key := range keys {
						for range 7 {
							rig.Must(rig.Must(optimistic.New(items(), optimistic.Config{}))(t).Update(t.Context(), key, fixture.AddOne))(t)
						}
						rig.Is(t, deletes(t.Context(), rig.Must(nolock.New(items(), nolock.Config{}))(t), key))
					}
				})
				return nil, rig.ErrNoAnswer
			})
			err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				_, first := mine.In(tx).Update(ctx, keys[0], fixture.AddOne)
				_, second := mine.In(tx).Update(ctx, keys[1], fixture.AddOne)
				return errors.Join(first, second)
			})
			if repo.VerdictOf(err) == repo.NotWritten {
				t.Errorf("it was applied, and told %v", err)
			}
		})
	}
}
