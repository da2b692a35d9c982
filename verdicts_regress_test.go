package dynahold_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Calls that ended in a wrong verdict, or in none that could be had. Each test
// is a bug that was found once.

// sending is what a hook may do with a write.
type sending = func() (*dynamodb.UpdateItemOutput, error)

// writesData reports whether a write carries a change of the balance.
func writesData(in *dynamodb.UpdateItemInput) bool {
	for _, name := range in.ExpressionAttributeNames {
		if name == "balance" {
			return true
		}
	}
	return false
}

// made is a world with one account, and a client of it with hooks.
func made(t *testing.T, key repo.Key) (*world, *hooked) {
	t.Helper()
	w := newWorld(t)
	id, _ := key.Partition.(string)
	rig.Must(rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), Account{ID: id, Seq: 1, At: 1}))(t)
	return w, &hooked{Client: w.Client}
}

// A batch that was applied, whose answer was lost, and whose repetition the
// service refused, ran again: every change was made twice.
func TestAnUnknownBatchDoesNotRunAgain(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w, h := made(t, hotKey)
			var data atomic.Int64
			h.update = func(_ int, in *dynamodb.UpdateItemInput, send sending) (*dynamodb.UpdateItemOutput, error) {
				if !writesData(in) {
					return send()
				}
				switch data.Add(1) {
				case 1:
					_, _ = send()
					return nil, errNoAnswer
				case 2:
					return nil, &types.ItemCollectionSizeLimitExceededException{}
				}
				return send()
			}
			r := s.open(t, w, h)
			const callers = 4
			change := func(c *crowd) {
				_, err := r.Update(t.Context(), hotKey, func(_ context.Context, a *Account) error { a.Balance++; c.first(); return nil })
				if err != nil && !errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Error(err)
				}
			}
			c := crowdBehind(change)
			for range callers - 1 {
				c.done.Go(func() { change(c) })
			}
			c.standing(t, callers-1)
			c.done.Wait()
			if got := rig.Must(r.Get(t.Context(), hotKey))(t); got.Balance > callers {
				t.Errorf("balance %d after %d changes of 1", got.Balance, callers)
			}
		})
	}
}

// A part of a batch that nobody had written, and that waited to run again, was
// told "unknown" when its context ended, and only after seconds.
func TestAPartThatWasNeverWrittenIsNotUnknown(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w, h := made(t, hotKey)
			r := s.open(t, w, h)
			c := crowdBehind(func(c *crowd) {
				rig.Must(r.Update(t.Context(), hotKey, func(_ context.Context, a *Account) error { a.Balance++; c.first(); return nil }))(t)
			})
			ctx, leave := context.WithCancel(t.Context())
			told := make(chan struct{})
			runs := 0
			c.done.Go(func() {
				_, _ = r.Update(t.Context(), hotKey, func(context.Context, *Account) error {
					if runs++; runs == 2 { // alone, and the other one behind it
						leave()
						<-told
					}
					return repo.Remove
				})
			})
			inLine(t, 1)
			c.done.Go(func() {
				defer close(told)
				_, err := r.Update(ctx, hotKey, func(context.Context, *Account) error { return repo.Remove })
				if errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Errorf("nothing of it was ever sent: %v", err)
				}
			})
			c.standing(t, 2)
			c.done.Wait()
		})
	}
}

// Numbers that were drawn during a long hold made the item look like another
// one, that was made anew under the same key.
func TestManyDrawsAreNotAnotherLife(t *testing.T) {
	drawn := func(t *testing.T, w *world, held *lockedread.Held[Account]) {
		_, err := w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &w.Table,
			Key: rig.Must(w.repoTable(t, w.Client).EncodeKey(hookedKey))(t), UpdateExpression: aws.String("SET lockToken = lockToken + :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "100001"}}})
		if err == nil {
			err = held.Extend(t.Context()) // as a renewal sees it
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w, h := made(t, hookedKey)
	l := w.locker(t, h, lockedread.Config{Fair: true})
	held := rig.Must(l.Acquire(t.Context(), hookedKey))(t)
	drawn(t, w, held)
	lost := false
	h.update = func(_ int, _ *dynamodb.UpdateItemInput, send sending) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if err == nil && !lost {
			lost = true
			return nil, errNoAnswer
		}
		return out, err
	}
	item := held.Item()
	item.Balance = 7
	if _, err := held.Commit(t.Context(), item); err != nil {
		t.Errorf("one lost answer: %v", err)
	}
	h.update = nil
	held = rig.Must(l.Acquire(t.Context(), hookedKey))(t)
	drawn(t, w, held)
	if err := l.Break(t.Context(), hookedKey, held.Token()); err != nil {
		t.Fatal(err)
	}
	rig.Is(t, held.Delete(t.Context()), repo.ErrLockLost)
}

// A commit that the network delivered twice, with a delete in between, was
// called lost: "nothing was written".
func TestACommitThatIsDeliveredTwice(t *testing.T) {
	for name, anew := range map[string]bool{"gone": false, "made anew": true} {
		t.Run(name, func(t *testing.T) {
			w, h := made(t, hookedKey)
			other := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t)
			h.update = func(_ int, in *dynamodb.UpdateItemInput, send sending) (*dynamodb.UpdateItemOutput, error) {
				out, err := send()
				if err != nil || !writesData(in) {
					return out, err
				}
				_, err = other.Update(t.Context(), hookedKey, func(context.Context, *Account) error { return repo.Remove })
				if err != nil {
					t.Error(err)
				}
				if anew {
					rig.Must(other.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
				}
				return send()
			}
			r := rig.Must(pessimistic.New(w.repoTable(t, h), pessimistic.Config{}))(t)
			_, err := r.Update(t.Context(), hookedKey, addOne)
			rig.Is(t, err, repo.ErrOutcomeUnknown)
		})
	}
}

// The release after a commit without a verdict knows it.
func TestAReleaseTellsWhatBecameOfTheCommit(t *testing.T) {
	for _, cfg := range []pessimistic.Config{{}, {Fair: true}, {Combine: true}} {
		for name, applied := range map[string]bool{"applied": true, "not applied": false} {
			t.Run(name, func(t *testing.T) {
				w, h := made(t, hookedKey)
				ctx, leave := context.WithCancel(t.Context())
				h.update = func(_ int, in *dynamodb.UpdateItemInput, send sending) (*dynamodb.UpdateItemOutput, error) {
					if !writesData(in) {
						return send()
					}
					if applied && ctx.Err() == nil {
						_, _ = send()
					}
					leave()
					return nil, errNoAnswer
				}
				r := rig.Must(pessimistic.New(w.repoTable(t, h), cfg))(t)
				told, err := r.Update(ctx, hookedKey, addOne)
				got := rig.Must(r.Get(t.Context(), hookedKey))(t)
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

// An image that cannot be read, after a lost answer, says nothing of the commit.
func TestAnUnreadableItemAfterALostAnswer(t *testing.T) {
	w, h := made(t, hookedKey)
	h.update = func(_ int, in *dynamodb.UpdateItemInput, send sending) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if err != nil || !writesData(in) {
			return out, err
		}
		if _, err := w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &w.Table, Key: in.Key, UpdateExpression: aws.String("SET lockTime = :x, lockedBy = :x"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":x": &types.AttributeValueMemberS{Value: "2026-01-01"}}}); err != nil {
			t.Error(err)
		}
		return nil, errNoAnswer
	}
	r := rig.Must(pessimistic.New(w.repoTable(t, h), pessimistic.Config{}))(t)
	_, err := r.Update(t.Context(), hookedKey, addOne)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
}

// What a tombstone keeps is not the new item's: its version counted on where
// the lock was handed on, and its event id stayed.
func TestANewItemAfterATombstone(t *testing.T) {
	t.Run("version", func(t *testing.T) {
		w := newWorld(t)
		events := rig.Must(nolock.New(w.repoTable(t, w.Client), nolock.Config{}))(t)
		for at := range int64(6) {
			rig.Is(t, events.Put(t.Context(), Account{ID: "hot", Seq: 1, At: at + 1}))
		}
		rig.Is(t, events.DeleteAt(t.Context(), hotKey, int64(10)))
		r := rig.Must(pessimistic.New(w.repoTable(t, w.Client), pessimistic.Config{}))(t)
		var versions [2]int64
		upsert := func(c *crowd, i int) {
			versions[i] = rig.Must(r.Upsert(t.Context(), hotKey, func(_ context.Context, a *Account) error { a.At = 20; a.Balance++; c.first(); return nil }))(t).Version
		}
		c := crowdBehind(func(c *crowd) { upsert(c, 0) })
		c.done.Go(func() { upsert(c, 1) })
		c.standing(t, 1)
		c.done.Wait()
		if versions != [2]int64{1, 2} {
			t.Errorf("versions %v of two changes in a row", versions)
		}
	})
	type tied struct {
		ID  string `dynamodbav:"id" repo:"pk"`
		Seq int    `dynamodbav:"seq" repo:"sk"`
		At  int64  `dynamodbav:"at" repo:"eventtime"`
		By  string `dynamodbav:"by,omitempty" repo:"eventid"`
	}
	w := newWorld(t)
	table := rig.Must(repo.NewTable[tied](w.Client, w.Table, repo.TableConfig{}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	for name, r := range map[string]repo.Repository[tied]{"nolock": events, "pessimistic": rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)} {
		t.Run("event id, "+name, func(t *testing.T) {
			key := repo.Key{Partition: name, Sort: 1}
			rig.Is(t, events.DeleteAt(t.Context(), key, nolock.Event{Time: 5, ID: "zz"}))
			told := rig.Must(r.Upsert(t.Context(), key, func(_ context.Context, x *tied) error { x.At = 9; return nil }))(t)
			if got := rig.Must(table.Get(t.Context(), key))(t); got != told {
				t.Errorf("told %+v, stored %+v", told, got)
			}
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
	w := newWorld(t)
	events := rig.Must(nolock.New(rig.Must(repo.NewTable[dated](w.Client, w.Table, repo.TableConfig{}))(t), nolock.Config{}))(t)
	rig.Is(t, events.DeleteAt(t.Context(), hotKey, 5))
	rig.Is(t, events.Apply(t.Context(), hotKey, 6, expression.Set(expression.Name("expiresAt"), expression.Value(4_000_000_000))))
	if got := rig.Must(events.Get(t.Context(), hotKey))(t); got.Ends != 4_000_000_000 {
		t.Errorf("stored %+v", got)
	}
}

// What can be created can be changed under its lock: the lock's attributes have
// room of their own.
func TestAnItemOfTheGreatestSizeCanBeChanged(t *testing.T) {
	eachStrategy(t, func(t *testing.T, w *world, s strategy) {
		r := s.open(t, w, w.Client)
		rig.Must(r.Create(t.Context(), Account{ID: "hot", Seq: 1, At: 1, Note: strings.Repeat("x", 408_576-60)}))(t)
		for _, cut := range []int{0, 0, 100} {
			rig.Must(r.Update(t.Context(), hotKey, func(_ context.Context, a *Account) error { a.Balance = 1; a.At++; a.Note = a.Note[cut:]; return nil }))(t)
		}
	})
}

// An item that does not fit its type, and a service that goes away: the call
// outlived its context by a lease.
func TestACallEndsWithItsContextAlsoWhereNothingAnswers(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"},
		"sum": &types.AttributeValueMemberB{Value: []byte("longer")},
	}}); err != nil {
		t.Fatal(err)
	}
	h := &hooked{Client: w.Client}
	h.update = func(n int, _ *dynamodb.UpdateItemInput, send sending) (*dynamodb.UpdateItemOutput, error) {
		if n > 1 {
			return nil, errNoAnswer
		}
		return send()
	}
	const lease = 5 * time.Minute
	r := rig.Must(pessimistic.New(rig.Must(repo.NewTable[hashed](h, w.Table, repo.TableConfig{}))(t), pessimistic.Config{Lease: lease}))(t)
	ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	began := time.Now()
	_, err := r.Update(ctx, hookedKey, func(context.Context, *hashed) error { return nil })
	rig.Is(t, err, repo.ErrSchema)
	if took := time.Since(began); took > lease/4 {
		t.Errorf("the call ended after %v, its context after 200 ms", took)
	}
}

// bag is a context that cannot be compared.
type bag struct {
	context.Context
	Values map[string]any
}

// A request that took something and failed compared two contexts, which not all
// contexts bear. A panic of the client must not keep the item's place either.
func TestContextsThatCannotBeCompared(t *testing.T) {
	w := &world{rig.New(t)} // without a table
	l := w.locker(t, w.Client, lockedread.Config{})
	_, err := l.Acquire(bag{context.Background(), map[string]any{}}, hookedKey)
	rig.Is(t, err, repo.ErrNoTable)

	w, h := made(t, hookedKey)
	l = w.locker(t, h, lockedread.Config{})
	h.update = func(int, *dynamodb.UpdateItemInput, sending) (*dynamodb.UpdateItemOutput, error) {
		panic("the client's own")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = l.Acquire(t.Context(), hookedKey)
		t.Error("the client's panic was lost")
	}()
	h.update = nil
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	held, err := l.Acquire(ctx, hookedKey)
	rig.Is(t, err)
	if err == nil {
		rig.Is(t, held.Release(ctx))
	}
}
