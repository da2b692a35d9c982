package pessimistic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A delete whose answers are lost is known by its release: one that finds the item gone
// before the lease is over shows that it was deleted, one that finds the lock in place,
// or what somebody else has made of it, that it was not.
func TestTheReleaseTellsOfADelete(t *testing.T) {
	remove := func(context.Context, *stock) error { return repo.Remove }
	for way, call := range map[string]func(ctx context.Context, r *pessimistic.Repository[stock]) error{
		"Delete": func(ctx context.Context, r *pessimistic.Repository[stock]) error { return r.Delete(ctx, key) },
		"Delete under an id": func(ctx context.Context, r *pessimistic.Repository[stock]) error {
			return r.Once("id").Delete(ctx, key)
		},
		"Update": func(ctx context.Context, r *pessimistic.Repository[stock]) error {
			_, err := r.Update(ctx, key, remove)
			return err
		},
		"Upsert": func(ctx context.Context, r *pessimistic.Repository[stock]) error {
			_, err := r.Upsert(ctx, key, remove)
			return err
		},
	} {
		for _, cfg := range []pessimistic.Config{{}, {Fair: true}, {Combine: true}} {
			for _, fate := range []string{"arrives", "is lost", "is lost, and the lock broken", "arrives, and the item is made anew"} {
				b := rig.New(t)
				client := &rig.Intercept{Client: b.Client}
				table := rig.Must(repo.NewTable[stock](client, b.Table, repo.TableConfig{}))(t)
				rig.Is(t, table.EnsureTable(t.Context()))
				r := rig.Must(pessimistic.New(table, cfg))(t)
				rig.Must(r.Create(t.Context(), stock{ID: "apple", Count: 10}))(t)
				ctx, cancel := context.WithCancel(t.Context())
				client.Delete = func(n int, _ *dynamodb.DeleteItemInput, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
					defer cancel()
					if n > 1 {
						return nil, rig.ErrNoAnswer
					}
					switch fate {
					case "arrives":
						rig.Must(send())(t)
					case "is lost, and the lock broken":
						lock := rig.Must(table.Inspect(t.Context(), key))(t)
						rig.Is(t, r.Locker().Break(t.Context(), key, lock.Token))
					case "arrives, and the item is made anew":
						rig.Must(send())(t)
						rig.Must(r.Create(t.Context(), stock{ID: "apple", Count: 7}))(t)
					}
					return nil, rig.ErrNoAnswer
				}
				err := call(ctx, r)
				cancel()
				client.Delete = nil
				switch fate {
				case "arrives":
					rig.Is(t, err)
					_, err = table.Inspect(t.Context(), key)
					rig.Is(t, err, repo.ErrNotFound)
				case "arrives, and the item is made anew":
					rig.Is(t, err)
					wantFree(t, table, 7)
				default:
					if rig.Is(t, err, context.Canceled); errors.Is(err, repo.ErrOutcomeUnknown) {
						t.Errorf("%s, %+v, it %s: %v", way, cfg, fate, err)
					}
					wantFree(t, table, 10)
				}
				if t.Failed() {
					t.Fatalf("%s, %+v, it %s", way, cfg, fate)
				}
			}
		}
	}
}

// A change cannot delete its own item by a call of its own: that would wait for itself.
func TestDeleteInsideAChange(t *testing.T) {
	r, table := open(t, pessimistic.Config{})
	_, err := r.Update(t.Context(), key, func(ctx context.Context, s *stock) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second) // of one that waits
		defer cancel()
		err := r.Delete(ctx, key)
		if rig.Is(t, err, repo.ErrNested); errors.Is(err, context.DeadlineExceeded) {
			t.Error("it waits for itself")
		}
		s.Count++
		return nil
	})
	rig.Is(t, err)
	wantFree(t, table, 11)
}
