package faults_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A refusal by a lock proves nothing about an earlier attempt that is still on
// its way: when the lock is released without a change, it must not fit any more.
func TestDelayedWriteDoesNotLandAfterALock(t *testing.T) {
	t.Parallel()
	w := fixture.New(t)
	h := &rig.Intercept{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.Items(t, w.Client), pessimistic.Config{}))(t)
	versions := rig.Must(optimistic.New(w.Items(t, h), optimistic.Config{}))(t)
	rig.Must(locks.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	var delayed *dynamodb.UpdateItemInput
	var release func(context.Context) error
	h.Update = func(n int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		switch n {
		case 1:
			delayed = in
			release = rig.Must(locks.Acquire(t.Context(), fixture.Key))(t).Release
			return nil, rig.ErrNoAnswer
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
	_, err := versions.Update(t.Context(), fixture.Key, fixture.AddOne)
	if got := rig.Must(locks.Get(t.Context(), fixture.Key))(t); got.Balance != 1 {
		t.Errorf("one update, %v: balance %d", err, got.Balance)
	}
}

// Save said "locked", so not written, although an earlier attempt was still on
// its way, and fitted when the lock was released without a change.
func TestSaveThatMayStillLandIsNotRefused(t *testing.T) {
	for _, cfg := range []optimistic.Config{{FailLocked: true}, {Wait: repo.Wait{Attempts: 1}}} {
		w := fixture.New(t)
		h := &rig.Intercept{Client: w.Client}
		locks := rig.Must(pessimistic.New(w.Items(t, w.Client), pessimistic.Config{}))(t)
		versions := rig.Must(optimistic.New(w.Items(t, h), cfg))(t)
		item := rig.Must(locks.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
		var delayed *dynamodb.UpdateItemInput
		var release func(context.Context) error
		h.Update = func(n int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			if n > 1 {
				return send()
			}
			delayed, release = in, rig.Must(locks.Acquire(t.Context(), fixture.Key))(t).Release
			return nil, rig.ErrNoAnswer
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

// Remove knows the version alone: its own repetition must not delete the item
// that somebody made anew.
func TestRemoveIsNotRepeatedOnANewItem(t *testing.T) {
	w := fixture.New(t)
	h := &rig.Intercept{Client: w.Client}
	mine := rig.Must(optimistic.New(w.Items(t, h), optimistic.Config{}))(t)
	other := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
	first := rig.Must(other.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	h.Delete = func(n int, _ *dynamodb.DeleteItemInput, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
		out, err := send()
		if n == 1 {
			rig.Must(other.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1, Balance: 77}))(t)
			return nil, rig.ErrNoAnswer
		}
		return out, err
	}
	rig.Is(t, mine.Remove(t.Context(), first), repo.ErrOutcomeUnknown)
	if got := rig.Must(other.Get(t.Context(), fixture.Key))(t); got.Balance != 77 {
		t.Errorf("the new item: %+v", got)
	}
}

// A resent delete finds its own work done.
func TestResentDeletes(t *testing.T) {
	w := fixture.New(t)
	h := &rig.Intercept{Client: w.Client}
	locks := rig.Must(pessimistic.New(w.Items(t, h), pessimistic.Config{}))(t)
	h.Delete = func(_ int, _ *dynamodb.DeleteItemInput, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
		if _, err := send(); err != nil {
			t.Error(err)
		}
		return send()
	}
	rig.Must(locks.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	if err := locks.Delete(t.Context(), fixture.Key); err != nil {
		t.Errorf("delete, resent: %v", err)
	}
	if err := rig.Must(locks.Locker().AcquireOrCreate(t.Context(), fixture.Key))(t).Release(t.Context()); err != nil {
		t.Errorf("release of a stub, resent: %v", err)
	}
}

// A commit that the network delivered twice, with a delete in between, was
// called lost: "nothing was written".
func TestACommitThatIsDeliveredTwice(t *testing.T) {
	for name, anew := range map[string]bool{"gone": false, "made anew": true} {
		t.Run(name, func(t *testing.T) {
			w, h := fixture.NewWith(t, fixture.Key)
			other := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
			h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				out, err := send()
				if err != nil || !writesData(in) {
					return out, err
				}
				_, err = other.Update(t.Context(), fixture.Key, func(context.Context, *fixture.Account) error { return repo.Remove })
				if err != nil {
					t.Error(err)
				}
				if anew {
					rig.Must(other.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
				}
				return send()
			}
			r := rig.Must(pessimistic.New(w.Items(t, h), pessimistic.Config{}))(t)
			_, err := r.Update(t.Context(), fixture.Key, fixture.AddOne)
			rig.Is(t, err, repo.ErrOutcomeUnknown)
		})
	}
}
