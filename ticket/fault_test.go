package ticket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// Where a number is drawn in one step and the entry is written in another,
// whoever looks in between sees a number without an entry, and goes in first.
func TestS4_6_NoNumberIsVisibleWithoutItsEntry(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	join(t, q, "door")
	const more = 60
	var joining sync.WaitGroup
	for range 2 {
		joining.Go(func() {
			for range more / 2 {
				if _, err := q.Join(t.Context(), "door"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	images := 0
	for last := 0; last < more+1 && !t.Failed(); images++ {
		item := b.raw(t, "door")
		last = entries(t, item)
		found := false
		for name, v := range item {
			found = found || (name[:1] == "w" && number(v) == number(item["next"]))
		}
		if !found {
			t.Fatalf("next is %s, and no entry has it", number(item["next"]))
		}
	}
	joining.Wait()
	if images < 5 {
		t.Errorf("only %d images", images)
	}
}

// Every fault, at every request of a turn: each has its outcome, none blocks
// those who come after.
func TestS4_6_FaultsAtEveryRequest(t *testing.T) {
	steps := map[string]string{"join": "if_not_exists", "done": "REMOVE"}
	for step, text := range steps {
		for _, kind := range fault.AllKinds() {
			t.Run(step+", "+kind.String(), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.first(text, kind)
				q := b.queue(t, ticket.Config{})
				turn := lock(t, q, "door")
				list, err := q.List(t.Context(), "door")
				if err != nil || len(list) != 1 || list[0].Number != turn.Number() {
					t.Errorf("%+v, %v; want %d alone", list, err, turn.Number())
				}
				b.Net.Wait() // a late copy comes while the entry is there
				done(t, turn)
				b.Net.Wait()
				wantEmpty(t, b, "door")
				next := lock(t, q, "door")
				rig.Equal(t, next.Number(), turn.Number()+1, "number after %d", turn.Number())
				done(t, next)
			})
		}
	}
}

func TestRenewalWithoutAnAnswerIsRecognised(t *testing.T) {
	for _, kind := range []fault.Kind{fault.LoseResponse, fault.Resend, fault.Truncate} {
		b := newBench(t)
		turn := lock(t, b.queue(t, ticket.Config{}), "door")
		was := turn.Until()
		b.first("b_", kind)
		if err := turn.Extend(t.Context()); err != nil || !turn.Until().After(was) {
			t.Errorf("%v: from %v to %v, %v", kind, was, turn.Until(), err)
		}
		done(t, turn)
	}
}

// The known limit: a copy of the request to join that arrives after its owner
// has gone stands in the line until its lease is over, and no longer.
func TestLateCopyOfAJoinStallsTheLineForALease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(t, short)
	var (
		mu   sync.Mutex
		body []byte
	)
	b.Count.OnRequest(func(op string, req []byte) {
		mu.Lock()
		defer mu.Unlock()
		if body == nil && op == "UpdateItem" {
			body = append(body, req...)
		}
	})
	drawn := time.Now()
	turn := lock(t, q, "door")
	b.Count.OnRequest(nil)
	done(t, turn)
	resend(t, body)
	if n := entries(t, b.raw(t, "door")); n != 1 {
		t.Fatalf("%d entries, want the copy's", n)
	}
	next := lock(t, b.queue(t, ticket.Config{}), "door") // whose own place outlasts any delay
	if d := time.Since(drawn); d < short.Lease {
		t.Errorf("passed over after %v, within the lease", d)
	}
	done(t, next)
	wantEmpty(t, b, "door")
}

func TestContextEndsWhileTheRequestToJoinHasNoAnswer(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.HoldResponse, fault.HoldRequest} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			q := b.queue(t, ticket.Config{})
			b.first("if_not_exists", kind)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() {
				_, err := q.Lock(ctx, "door")
				got <- err
			}()
			<-b.Net.Held()
			cancel()
			rig.Is(t, <-got, context.Canceled)
			wantEmpty(t, b, "door")
			rig.Equal(t, q.Groups(), 0, "groups are left of nobody")
			// The same while the queue is closed.
			b.first("if_not_exists", kind)
			go func() {
				_, err := q.Lock(t.Context(), "door")
				got <- err
			}()
			<-b.Net.Held()
			rig.Is(t, q.Close(t.Context()))
			rig.Is(t, <-got, ticket.ErrClosed)
			wantEmpty(t, b, "door")
			rig.Equal(t, q.Groups(), 0, "groups are left of nobody")
		})
	}
}

func TestContextEndsWhileWaiting(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := q.Lock(ctx, "door")
		got <- err
	}()
	rig.Await(t, "it stands behind the holder", func() bool { return entries(t, b.raw(t, "door")) == 2 })
	cancel()
	err := <-got
	rig.Is(t, err, context.Canceled)
	rig.Is(t, err, repo.ErrLocked)
	if n := entries(t, b.raw(t, "door")); n != 1 {
		t.Errorf("%d entries, want the holder's", n)
	}
	done(t, turn)
}

// register is what the lock protects: a counter that knows the greatest token
// it has seen.
type register struct {
	bench bench
	key   ddb.Item
}

func (r *register) read(ctx context.Context) (count, token int64, err error) {
	out, err := rig.Client().GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.bench.Table, Key: r.key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, 0, err
	}
	count, _ = strconv.ParseInt(number(out.Item["count"]), 10, 64)
	token, _ = strconv.ParseInt(number(out.Item["token"]), 10, 64)
	return count, token, nil
}

// add is a read-modify-write with nothing but the lock to protect it.
func (r *register) add(ctx context.Context, token int64) error {
	count, last, err := r.read(ctx)
	if err != nil {
		return err
	}
	if token <= last {
		return fmt.Errorf("token %d after %d", token, last)
	}
	_, err = rig.Client().PutItem(ctx, &dynamodb.PutItemInput{TableName: &r.bench.Table, Item: ddb.Item{
		"queue": r.key["queue"], "count": ddb.Integer(count + 1), "token": ddb.Integer(token)}})
	return err
}

func TestS4_6_NoUpdateIsLostUnderFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := &register{bench: b, key: ddb.Item{"queue": ddb.Text("register")}}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	workers, rounds := 6, rig.Share(5, 10)
	var (
		work    sync.WaitGroup
		inside  atomic.Int32
		added   atomic.Int64
		unknown atomic.Int64 // turns that the faults ended early
	)
	for i := range workers {
		client, net := rig.Faulty(seed+uint64(i), 0.25)
		q := rig.Must(ticket.New(client, b.Table, ticket.Config{Lease: short.Lease, ClockSkew: 10 * time.Millisecond}))(t)
		work.Go(func() {
			for range rounds {
				turn, err := q.Lock(t.Context(), "door")
				if err != nil {
					t.Log(err)
					unknown.Add(1) // attempts are used up: nothing was done
					continue
				}
				if inside.Add(1) > 1 {
					t.Error("two are inside")
				}
				if turn.Context().Err() == nil {
					rig.Is(t, r.add(turn.Context(), turn.Number()))
					added.Add(1)
				}
				inside.Add(-1)
				if err := turn.Done(t.Context()); err != nil {
					t.Log(err)
					unknown.Add(1)
				}
			}
			net.Wait()
		})
	}
	work.Wait()
	count, _, err := r.read(t.Context())
	if err != nil || count != added.Load() || count == 0 {
		t.Errorf("count %d after %d additions, %v", count, added.Load(), err)
	}
	t.Logf("%d additions, %d calls without a verdict", added.Load(), unknown.Load())
	entries(t, b.raw(t, "door")) // n is right
}

// resend delivers a request once more, as a network may.
func resend(t testing.TB, body []byte) {
	t.Helper()
	in := rig.Must(decode(body))(t)
	rig.Must(rig.Client().UpdateItem(t.Context(), in))(t)
}

// attributes reads the JSON of a request's values.
func attributes(raw map[string]map[string]string) map[string]types.AttributeValue {
	values := map[string]types.AttributeValue{}
	for name, v := range raw {
		if n, ok := v["N"]; ok {
			values[name] = ddb.Number(n)
		} else {
			values[name] = ddb.Text(v["S"])
		}
	}
	return values
}

func decode(body []byte) (*dynamodb.UpdateItemInput, error) {
	var raw struct {
		TableName, UpdateExpression, ConditionExpression string
		ExpressionAttributeNames                         map[string]string
		Key, ExpressionAttributeValues                   map[string]map[string]string
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemInput{TableName: &raw.TableName, UpdateExpression: &raw.UpdateExpression, ConditionExpression: &raw.ConditionExpression,
		ExpressionAttributeNames: raw.ExpressionAttributeNames, Key: attributes(raw.Key), ExpressionAttributeValues: attributes(raw.ExpressionAttributeValues)}, nil
}
