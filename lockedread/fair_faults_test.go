package lockedread_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// TestFairUnderFaults: every request may be lost, repeated or late; every
// verdict is compared with the item.
func TestFairUnderFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b := newBench(t)
	ctx := soon(t)
	var committed, unknown atomic.Int64
	var done sync.WaitGroup
	for i := range 4 {
		client := rig.Client(func(o *dynamodb.Options) {
			o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Seed: seed + uint64(i), Rate: 0.1, MaxDelay: 20 * time.Millisecond, Kinds: []fault.Kind{
				fault.DropRequest, fault.LoseResponse, fault.CutResponse, fault.Resend, fault.LateDuplicate, fault.Delay, fault.DelayResponse,
				fault.Truncate, fault.Error500, fault.Error500After, fault.TransactionConflict}})
			o.Retryer = retry.NewStandard() // whose attempts are few
		})
		table := rig.Must(repo.NewTable[stock](client, b.Table, repo.TableConfig{}))(t)
		l := rig.Must(lockedread.New(table, lockedread.Config{Fair: true, Lease: 2 * time.Second, Clockless: seed%2 == 0}))(t)
		done.Go(func() {
			for range 6 {
				switch _, err := l.Update(ctx, key, addOne); {
				case err == nil:
					committed.Add(1)
				case errors.Is(err, repo.ErrOutcomeUnknown):
					unknown.Add(1)
				}
			}
		})
	}
	done.Wait()
	got, err := b.tableOf(t).Get(t.Context(), key)
	if n := int64(got.Count - 10); err != nil || n < committed.Load() || n > committed.Load()+unknown.Load() {
		t.Errorf("%d changes in the item, %v; %d committed, %d unknown", n, err, committed.Load(), unknown.Load())
	}
	if committed.Load() < 12 {
		t.Errorf("only %d of 24 were committed", committed.Load())
	}
}

// TestFairDrawsOnce loses the answers of draws: the place is drawn once.
func TestFairDrawsOnce(t *testing.T) {
	for _, kind := range []fault.Kind{fault.LoseResponse, fault.Error500After, fault.Resend, fault.Truncate} {
		b := newBench(t)
		holder := acquire(t, b.locker(t, lockedread.Config{Fair: true}))
		var once atomic.Bool
		b.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "UpdateItem" && !once.Swap(true) {
				return kind
			}
			return fault.None
		})
		waiting := make(chan error, 1)
		go func() {
			_, err := b.locker(t, lockedread.Config{Fair: true}).Update(soon(t), key, addOne)
			waiting <- err
		}()
		rig.Await(t, "it looks at the queue", func() bool { return b.Count.Count("GetItem") >= 3 })
		rig.Equal(t, b.entries(t), 1, "%v: entries", kind)
		rig.Is(t, holder.Release(t.Context()))
		if err := <-waiting; err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		b.Faults(nil)
		wantCount(t, b, 11)
		wantClean(t, b)
	}
}

// TestFairLeaving: contexts that end at any moment leave nothing behind.
func TestFairLeaving(t *testing.T) {
	b := newBench(t)
	var done sync.WaitGroup
	var committed, unknown atomic.Int64
	for i := range 6 {
		l := b.locker(t, lockedread.Config{Fair: true})
		rng := rand.New(rand.NewPCG(uint64(i), 1)) // repeatable on purpose
		done.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(20*time.Millisecond))))
				switch _, err := l.Update(ctx, key, addOne); {
				case err == nil:
					committed.Add(1)
				case errors.Is(err, repo.ErrOutcomeUnknown):
					unknown.Add(1)
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				cancel()
			}
		})
	}
	done.Wait()
	got, err := b.tableOf(t).Get(t.Context(), key)
	if n := int64(got.Count - 10); err != nil || n < committed.Load() || n > committed.Load()+unknown.Load() {
		t.Errorf("%d changes in the item, %v; %d committed, %d unknown", n, err, committed.Load(), unknown.Load())
	}
	wantClean(t, b)
}

// counted is an item whose writers need no lock.
type counted struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Count   int    `dynamodbav:"count"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// TestFairAmongOthers: those who are fair, those who are not, and writers
// without a lock, on one item.
func TestFairAmongOthers(t *testing.T) {
	const rounds = 8
	b := newBench(t)
	ctx := soon(t)
	table := rig.Must(repo.NewTable[counted](b.Client, b.Table, repo.TableConfig{}))(t)
	writer := rig.Must(optimistic.New(table, optimistic.Config{Attempts: 1000}))(t)
	updates := []func(context.Context, repo.Key, func(context.Context, *counted) error) (counted, error){writer.Update}
	for _, fair := range []bool{true, true, true, false} {
		l := rig.Must(lockedread.New(table, lockedread.Config{Fair: fair}))(t)
		updates = append(updates, l.Update)
	}
	var done sync.WaitGroup
	for _, update := range updates {
		done.Go(func() {
			for range rounds {
				if _, err := update(ctx, key, func(_ context.Context, v *counted) error { v.Count++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	wantCount(t, b, 10+len(updates)*rounds)
	wantClean(t, b)
}

// TestFairAndByHand: programs that follow the article by hand take their turns
// among those who are fair.
func TestFairAndByHand(t *testing.T) {
	const rounds = 8
	b := newBench(t)
	ctx := soon(t)
	var done sync.WaitGroup
	for range 3 {
		l := b.locker(t, lockedread.Config{Fair: true})
		done.Go(func() {
			for range rounds {
				if _, err := l.Update(ctx, key, addOne); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Go(func() {
		a := byHand{b, "by hand"}
		for n := 0; n < rounds && ctx.Err() == nil; {
			item, ok := a.acquire(t, time.Minute)
			if !ok {
				time.Sleep(time.Millisecond)
				continue
			}
			n++
			s, err := b.tableOf(t).Decode(item)
			if err != nil || !a.commit(t, s.Count+1) {
				t.Errorf("by hand: %v", err)
			}
		}
	})
	done.Wait()
	wantCount(t, b, 10+4*rounds)
	wantClean(t, b)
}
