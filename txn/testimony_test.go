package txn_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A transaction leaves one id on all its items. That others have written over it on one of
// them says nothing of a write that is bound to it on another: that one is not made again.
func TestAnotherItemIsNoEvidence(t *testing.T) {
	for _, kind := range []string{"optimistic", "nolock"} {
		for _, together := range []bool{false, true} {
			t.Run(kind+map[bool]string{true: ", in a transaction"}[together], func(t *testing.T) {
				w := newWorld(t)
				s, peers := w.stores[kind], []store{}
				for range 9 {
					peers = append(peers, openWorld(t, w.Peer(), false).stores[kind])
				}
				add := func(ctx context.Context, s store, ids ...string) error {
					return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
						for _, id := range ids {
							if err := s.in(tx).add(ctx, id, 1); err != nil {
								return err
							}
						}
						return nil
					})
				}
				a, b, c := w.id("a"), w.id("b"), w.id("c")
				for _, id := range []string{a, b, c} {
					rig.Is(t, s.create(t.Context(), id, 0))
				}
				rig.Is(t, add(t.Context(), s, a, b, c))
				var writes atomic.Int64
				var shown atomic.Bool
				w.Faults(func(op string, _ int, _ []byte) fault.Kind {
					if op != "UpdateItem" && op != "TransactWriteItems" {
						return fault.None
					}
					switch writes.Add(1) {
					case 1:
						return fault.LoseResponse
					case 2:
						rig.Is(t, peers[0].add(t.Context(), b, 1))
						for _, peer := range peers { // nothing of the write is in sight any more
							rig.Is(t, peer.add(t.Context(), a, 1))
							rig.Is(t, peer.add(t.Context(), c, 1))
						}
						go func() {
							_, err := s.get(context.Background(), b)
							rig.Is(t, err)
							shown.Store(true)
						}()
					}
					if !shown.Load() || together && writes.Load() < 20 {
						return fault.DropRequest
					}
					return fault.None
				})
				var err error
				if together {
					err = add(t.Context(), s, a, c)
				} else {
					err = s.add(t.Context(), a, 1)
				}
				w.Faults(nil)
				if err != nil {
					rig.Is(t, err, repo.ErrOutcomeUnknown)
				}
				has(t, s, a, 11)
			})
		}
	}
}

// Nor does the version of an item that was made anew behind the write: that it is ahead by as
// many as there are ids of others says nothing of the item that was there.
func TestAnItemMadeAnewIsNoEvidence(t *testing.T) {
	for name, c := range map[string]struct{ deletes, together bool }{
		"deleted":                  {true, false},
		"changed":                  {false, false},
		"changed, and others read": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, peer := w.stores["optimistic"], openWorld(t, w.Peer(), false).stores["optimistic"]
			a, b := w.id("a"), w.id("b")
			rig.Is(t, s.create(t.Context(), a, 0))
			rig.Is(t, s.create(t.Context(), b, 0))
			rig.Must(w.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{ // as a program without the library makes one
				TableName: aws.String(w.Table + "-o"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: a}},
				UpdateExpression:          aws.String("SET version = :zero REMOVE writers"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":zero": &types.AttributeValueMemberN{Value: "0"}}}))(t)
			var commits atomic.Int32
			w.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op != "TransactWriteItems" && (c.together || op != "UpdateItem" && op != "DeleteItem") {
					return fault.None
				}
				switch commits.Add(1) {
				case 1:
					return fault.LoseResponse
				case 2:
					if !c.deletes {
						rig.Is(t, peer.remove(t.Context(), a))
					}
					rig.Is(t, peer.create(t.Context(), a, 1000))
				}
				if c.together { // else the token tells
					return fault.DropRequest
				}
				return fault.None
			})
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if c.together {
					_, err := s.in(tx).get(ctx, b)
					rig.Is(t, err)
				}
				if c.deletes {
					return s.in(tx).remove(ctx, a)
				}
				return s.in(tx).add(ctx, a, 1)
			}), repo.ErrOutcomeUnknown)
			w.Faults(nil)
			has(t, peer, a, 1000)
		})
	}
}
