package dynahold_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// hooked lets a test act at the n-th write of a client: before it, after it, or
// in its place. Each test here is a bug that was found once.
type hooked struct {
	*dynamodb.Client
	n      int
	update func(n int, in *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error)
	remove func(n int, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error)
}

var errNoAnswer = errors.New("connection reset")

func (h *hooked) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	send := func() (*dynamodb.UpdateItemOutput, error) { return h.Client.UpdateItem(ctx, in, o...) }
	if h.update == nil {
		return send()
	}
	h.n++
	return h.update(h.n, in, send)
}

func (h *hooked) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	send := func() (*dynamodb.DeleteItemOutput, error) { return h.Client.DeleteItem(ctx, in, o...) }
	if h.remove == nil {
		return send()
	}
	h.n++
	return h.remove(h.n, send)
}

var hookedKey = repo.Key{Partition: "p", Sort: 1}

func addOne(_ context.Context, a *Account) error { a.Balance++; return nil }

// A refusal by a lock proves nothing about an earlier attempt that is still on
// its way: when the lock is released without a change, it must not fit any more.
func TestDelayedWriteDoesNotLandAfterALock(t *testing.T) {
	w := newWorld(t)
	h := &hooked{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.repoTable(t, w.Client), pessimistic.Config{}))(t)
	versions := rig.Must(optimistic.New(w.repoTable(t, h), optimistic.Config{}))(t)
	rig.Must(locks.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
	var delayed *dynamodb.UpdateItemInput
	var release func(context.Context) error
	h.update = func(n int, in *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error) {
		switch n {
		case 1:
			delayed = in
			release = rig.Must(locks.Acquire(t.Context(), hookedKey))(t).Release
			return nil, errNoAnswer
		case 2:
			out, err := send() // refused by the lock
			if err := release(t.Context()); err != nil {
				t.Error(err)
			}
			_, _ = w.Client.UpdateItem(t.Context(), delayed)
			return out, err
		}
		return send()
	}
	_, err := versions.Update(t.Context(), hookedKey, addOne)
	if got := rig.Must(locks.Get(t.Context(), hookedKey))(t); got.Balance != 1 {
		t.Errorf("one update, %v: balance %d", err, got.Balance)
	}
}

// A resent delete finds its own work done.
func TestResentDeletes(t *testing.T) {
	w := newWorld(t)
	h := &hooked{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.repoTable(t, h), pessimistic.Config{}))(t)
	h.remove = func(_ int, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
		if _, err := send(); err != nil {
			t.Error(err)
		}
		return send()
	}
	rig.Must(locks.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
	if err := locks.Delete(t.Context(), hookedKey); err != nil {
		t.Errorf("delete, resent: %v", err)
	}
	if err := rig.Must(locks.Locker().AcquireOrCreate(t.Context(), hookedKey))(t).Release(t.Context()); err != nil {
		t.Errorf("release of a stub, resent: %v", err)
	}
}

// Remove knows the version alone: its own repetition must not delete the item
// that somebody made anew.
func TestRemoveIsNotRepeatedOnANewItem(t *testing.T) {
	w := newWorld(t)
	h := &hooked{Client: w.Client}
	mine := rig.Must(optimistic.New(w.repoTable(t, h), optimistic.Config{}))(t)
	other := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t)
	first := rig.Must(other.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
	h.remove = func(n int, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
		out, err := send()
		if n == 1 {
			rig.Must(other.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1, Balance: 77}))(t)
			return nil, errNoAnswer
		}
		return out, err
	}
	rig.Is(t, mine.Remove(t.Context(), first), repo.ErrOutcomeUnknown)
	if got := rig.Must(other.Get(t.Context(), hookedKey))(t); got.Balance != 77 {
		t.Errorf("the new item: %+v", got)
	}
}

// A second commit of other data does not inherit the success of the first.
func TestCommitAfterAnUnknownOne(t *testing.T) {
	w := newWorld(t)
	h := &hooked{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.repoTable(t, h), pessimistic.Config{}))(t)
	rig.Must(locks.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
	held := rig.Must(locks.Acquire(t.Context(), hookedKey))(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.update = func(n int, _ *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error) {
		if n == 1 {
			if _, err := send(); err != nil {
				t.Error(err)
			}
			cancel()
		}
		return nil, errNoAnswer
	}
	item := held.Item()
	item.Balance = 1
	_, err := held.Commit(ctx, item)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	h.update = nil
	item.Balance = 2
	_, err = held.Commit(t.Context(), item)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
}

// An unknown outcome says nothing else, even if the call had waited for a lock.
func TestUnknownIsNotCalledLocked(t *testing.T) {
	w := newWorld(t)
	h := &hooked{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.repoTable(t, w.Client), pessimistic.Config{}))(t)
	rig.Must(locks.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
	held := rig.Must(locks.Acquire(t.Context(), hookedKey))(t)
	ctx, cancel := context.WithCancel(t.Context())
	released := false
	h.update = func(_ int, _ *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error) {
		cancel()
		return nil, errNoAnswer
	}
	// The first read shows the lock; it is released while the call waits.
	reads := &releasing{hooked: h, release: func() {
		if !released {
			released = true
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}}
	versions := rig.Must(optimistic.New(w.repoTable(t, reads), optimistic.Config{}))(t)
	_, err := versions.Update(ctx, hookedKey, addOne)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	if errors.Is(err, repo.ErrLocked) {
		t.Errorf("also called locked: %v", err)
	}
}

// releasing does something after the first read.
type releasing struct {
	*hooked
	release func()
}

func (r *releasing) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := r.Client.GetItem(ctx, in, o...)
	r.release()
	return out, err
}

// A deleted item does not come back by an older event, whoever brings it.
func TestUpsertRespectsTombstones(t *testing.T) {
	eachStrategy(t, func(t *testing.T, w *world, s strategy) {
		events := rig.Must(nolock.New(w.repoTable(t, w.Client), nolock.Config{}))(t)
		if err := events.DeleteAt(t.Context(), hookedKey, 20); err != nil {
			t.Fatal(err)
		}
		at := func(n int64) func(context.Context, *Account) error {
			return func(_ context.Context, a *Account) error { a.At = n; return nil }
		}
		r := s.open(t, w, w.Client)
		_, err := r.Upsert(t.Context(), hookedKey, at(15))
		rig.Is(t, err, repo.ErrStale)
		rig.Must(r.Upsert(t.Context(), hookedKey, at(25)))(t)
		rig.Is(t, events.Put(t.Context(), Account{ID: "p", Seq: 1, At: 22}), repo.ErrStale)
	})
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
	w := newWorld(t)
	table := rig.Must(repo.NewTable[dated](w.Client, w.Table, repo.TableConfig{}))(t)
	mine := rig.Must(nolock.New(table, nolock.Config{}))(t)
	if err := mine.Put(t.Context(), dated{ID: "p", Seq: 1, At: 1, By: "m", Ends: 4e9}); err != nil {
		t.Fatal(err)
	}
	set := expression.Set(expression.Name("note"), expression.Value("x"))
	if err := mine.Apply(t.Context(), hookedKey, 2, set); err != nil {
		t.Fatal(err)
	}
	unaware := rig.Must(nolock.New(w.repoTable(t, w.Client), nolock.Config{}))(t)
	if err := unaware.Put(t.Context(), Account{ID: "p", Seq: 1, At: 3}); err != nil {
		t.Fatal(err)
	}
	if got := rig.Must(mine.Get(t.Context(), hookedKey))(t); got.Ends != 4e9 {
		t.Errorf("the TTL is %d", got.Ends)
	}
	// An id of another type than the field's poisons nothing and panics nowhere.
	rig.Is(t, mine.Apply(t.Context(), hookedKey, nolock.Event{Time: 3, ID: 7}, set), repo.ErrSchema)
	rig.Is(t, mine.Apply(t.Context(), hookedKey, nolock.Event{Time: 9, ID: struct{ A int }{1}}, set), repo.ErrSchema)
}

// The decoder matches names without case; attributes that T does not map must
// not reach it.
func TestForeignAttributesThatDifferInCase(t *testing.T) {
	w := newWorld(t)
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	_, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "p"}, "seq": n("1"), "balance": n("1"), "Balance": n("99"), "BALANCE": n("98"), "at": n("1")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got := rig.Must(w.repoTable(t, w.Client).Get(t.Context(), hookedKey))(t); got.Balance != 1 {
			t.Fatalf("balance read as %d", got.Balance)
		}
	}
}

func TestNilChangeIsRefused(t *testing.T) {
	eachStrategy(t, func(t *testing.T, w *world, s strategy) {
		_, err := s.open(t, w, w.Client).Update(t.Context(), hookedKey, nil)
		rig.Is(t, err, repo.ErrConfig)
	})
}

// The SDK's decoder panics on bytes that are longer than their array.
func TestItemThatPanicsTheDecoder(t *testing.T) {
	type hashed struct {
		ID  string  `dynamodbav:"id" repo:"pk"`
		Seq int     `dynamodbav:"seq" repo:"sk"`
		Sum [2]byte `dynamodbav:"sum"`
	}
	w := newWorld(t)
	_, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"}, "sum": &types.AttributeValueMemberB{Value: []byte("longer")}}})
	if err != nil {
		t.Fatal(err)
	}
	table := rig.Must(repo.NewTable[hashed](w.Client, w.Table, repo.TableConfig{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	for range 2 { // and the lock is given back
		_, err = locks.Update(t.Context(), hookedKey, func(context.Context, *hashed) error { return nil })
		rig.Is(t, err, repo.ErrSchema)
	}
}

// Save said "locked", so not written, although an earlier attempt was still on
// its way, and fitted when the lock was released without a change.
func TestSaveThatMayStillLandIsNotRefused(t *testing.T) {
	for _, cfg := range []optimistic.Config{{FailLocked: true}, {Wait: repo.Wait{Attempts: 1}}} {
		w := newWorld(t)
		h := &hooked{Client: w.Client}
		locks := rig.Must(pessimistic.New(w.repoTable(t, w.Client), pessimistic.Config{}))(t)
		versions := rig.Must(optimistic.New(w.repoTable(t, h), cfg))(t)
		item := rig.Must(locks.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
		var delayed *dynamodb.UpdateItemInput
		var release func(context.Context) error
		h.update = func(n int, in *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error) {
			if n > 1 {
				return send()
			}
			delayed, release = in, rig.Must(locks.Acquire(t.Context(), hookedKey))(t).Release
			return nil, errNoAnswer
		}
		item.Balance = 5
		_, err := versions.Save(t.Context(), item)
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Client.UpdateItem(t.Context(), delayed); err != nil {
			t.Fatalf("the delayed write does not fit: %v; the test shows nothing", err)
		}
	}
}
