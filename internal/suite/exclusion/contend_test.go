package exclusion_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// fenced is an outside resource that a lock protects: it refuses fencing tokens
// smaller than the greatest that it has seen. Its own writes have no condition
// on what was read: only the lock protects those.
type fenced struct{ *fixture.Fixture }

func newFenced(t testing.TB) fenced { return fenced{fixture.New(t)} }

func (r fenced) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "resource"}, "seq": &types.AttributeValueMemberN{Value: "0"}}
}

func (r fenced) read(t testing.TB) int {
	out, err := r.Client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &r.Table, Key: r.key(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Error(err)
		return 0
	}
	n, ok := out.Item["count"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	count, _ := strconv.Atoi(n.Value)
	return count
}

// increment reads, and writes one more, in two requests. Without fencing the
// resource does not look at tokens.
func (r fenced) increment(t testing.TB, token int64, fencing bool) {
	n := r.read(t) + 1
	if !fencing {
		token = int64(n)
	}
	_, err := r.Client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: &r.Table, Key: r.key(),
		UpdateExpression:         aws.String("SET #count = :n, #token = :t"),
		ConditionExpression:      aws.String("attribute_not_exists(#token) OR #token < :t"),
		ExpressionAttributeNames: map[string]string{"#count": "count", "#token": "token"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n": &types.AttributeValueMemberN{Value: strconv.Itoa(n)}, ":t": &types.AttributeValueMemberN{Value: strconv.FormatInt(token, 10)}}})
	if err != nil {
		t.Errorf("token %d: %v", token, err)
	}
}

// contend lets workers increment the resource, each through a lock of its own.
func contend(t *testing.T, w *fixture.Fixture, l fixture.Lock, lease time.Duration, workers, rounds int, client func(worker int) *dynamodb.Client) {
	t.Helper()
	resource := newFenced(t)
	var inside atomic.Int32
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for worker := range workers {
		x := l.Open(t, w, client(worker), lease)
		all.Go(func() {
			for range rounds {
				// A lock may fail after many faults in a row: it was not taken then.
				g, err := x.Lock(ctx)
				for err != nil && ctx.Err() == nil {
					g, err = x.Lock(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				rig.Equal(t, inside.Add(1), 1, "holders at once")
				// A fail-closed lock makes a new row each time: package mutex says
				// what that means for tokens.
				resource.increment(t, g.Token, !l.Endless)
				inside.Add(-1)
				for err = g.Release(ctx); err != nil && !errors.Is(err, repo.ErrLockLost) && !errors.Is(err, repo.ErrReleased) && !errors.Is(err, repo.ErrOutcomeUnknown) && ctx.Err() == nil; {
					err = g.Release(ctx)
				}
			}
		})
	}
	all.Wait()
	rig.Equal(t, resource.read(t), workers*rounds, "count")
}

func TestLocksExclude(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		contend(t, w, l, 30*time.Second, 8, 6, func(int) *dynamodb.Client { return rig.Client() })
	})
}

func TestLocksExcludeUnderFaults(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		kinds := []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.CutResponse, fault.Delay, fault.DelayResponse,
			fault.Truncate, fault.Error500, fault.Error500After, fault.Throttle, fault.TransactionConflict, fault.Refuse, fault.Resend, fault.LateDuplicate}
		if l.Endless {
			// A late copy of an acquire, after the row was deleted, is a lock
			// without a holder, and stays: package mutex says so.
			kinds = kinds[:len(kinds)-1]
		}
		base := fixture.Seed(t)
		var injectors []*fault.Injector
		contend(t, w, l, 3*time.Second, 4, 6, func(worker int) *dynamodb.Client {
			return rig.Client(func(o *dynamodb.Options) {
				in := fault.New(o.HTTPClient, fault.Config{Seed: base + uint64(worker), Rate: 0.2, Kinds: kinds})
				injectors = append(injectors, in)
				o.HTTPClient = in
			})
		})
		var requests, faults int
		for _, in := range injectors {
			requests, faults = requests+in.Requests(), faults+in.Faulted()
		}
		t.Logf("%d requests, %d faults, %d verdicts", requests, faults, 4*6)
	})
}
