package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// TestCancellationAtEveryStep cancels the caller's context before, during and
// after each request of an update: the verdict is true and nothing stays locked.
func TestCancellationAtEveryStep(t *testing.T) {
	// What becomes of the request in whose middle the context is cancelled.
	for name, fate := range map[string]fault.Kind{
		"before it is sent":     fault.None, // the HTTP client finds the context done
		"while it is lost":      fault.DropRequest,
		"while its answer is":   fault.LoseResponse,
		"while it is truncated": fault.Truncate,
		"after it was answered": fault.DelayResponse,
	} {
		t.Run(name, func(t *testing.T) {
			eachStrategy(t, func(t *testing.T, w *world, s strategy) {
				key := repo.Key{Partition: "p", Sort: 1}
				rig.Must(s.open(t, w, w.Client).Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
				for at := range 3 {
					ctx, cancel := context.WithCancel(t.Context())
					client := rig.Client(func(o *dynamodb.Options) {
						o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: func(_ string, n int, _ []byte) fault.Kind {
							if n == at {
								cancel()
								return fate
							}
							return fault.None
						}})
					})
					id := fmt.Sprint(at)
					_, err := s.open(t, w, client).Update(ctx, key, func(_ context.Context, a *Account) error {
						a.Ops = append(a.Ops, id)
						return nil
					})
					cancel()
					checkCancelled(t, w, s, key, id, err)
				}
			})
		})
	}
}

// checkCancelled compares a verdict with the item, and updates it once more.
func checkCancelled(t *testing.T, w *world, s strategy, key repo.Key, id string, err error) {
	t.Helper()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than a lease
	defer cancel()
	after := rig.Must(s.open(t, w, w.Client).Update(short, key, func(_ context.Context, a *Account) error { a.Balance++; return nil }))(t)
	applied := slices.Contains(after.Ops, id)
	switch {
	case err == nil && !applied:
		t.Errorf("%s: acknowledged and lost", id)
	case err != nil && applied && !errors.Is(err, repo.ErrOutcomeUnknown):
		t.Errorf("%s: applied, but %v", id, err)
	case err != nil && !errors.Is(err, context.Canceled):
		t.Errorf("%s: %v, want context.Canceled in it", id, err)
	}
}

func TestContextCancelledBeforehandSendsNothing(t *testing.T) {
	eachStrategy(t, func(t *testing.T, w *world, s strategy) {
		r := s.open(t, w, w.Client)
		mine := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(mine)
		_, err := r.Update(ctx, repo.Key{Partition: "p", Sort: 1}, func(context.Context, *Account) error { return nil })
		rig.Is(t, err, context.Canceled)
		rig.Is(t, err, mine)
		_, err = r.Create(ctx, Account{ID: "p", Seq: 1, At: 1})
		rig.Is(t, err, context.Canceled)
		if n := w.Count.Total(); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestChangeThatCancelsItsCaller(t *testing.T) {
	eachStrategy(t, func(t *testing.T, w *world, s strategy) {
		r := s.open(t, w, w.Client)
		key := repo.Key{Partition: "p", Sort: 1}
		rig.Must(r.Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := r.Update(ctx, key, func(inner context.Context, a *Account) error {
			cancel()
			<-inner.Done()
			a.Ops = []string{"x"}
			return nil
		})
		checkCancelled(t, w, s, key, "x", err)
	})
}
