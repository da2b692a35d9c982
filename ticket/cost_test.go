package ticket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

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

func TestFreeLockAndDoneAreTwoRequests(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	for range 2 { // a new item, and one that is there
		b.Count.Reset()
		turn := lock(t, q, "door")
		done(t, turn)
		if n := b.Count.Counts(); n["UpdateItem"] != 2 || b.Count.Total() != 2 {
			t.Errorf("requests %v, want two UpdateItem", n)
		}
	}
}

func TestEntriesAreShort(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	join(t, q, "door")
	one := ddb.Size(b.raw(t, "door"))
	const more = 50
	for range more {
		join(t, q, "door")
	}
	all := ddb.Size(b.raw(t, "door"))
	each := (all - one) / more
	t.Logf("an entry has about %d bytes, the rest of the item %d", each, one-each)
	if each > 48 {
		t.Errorf("an entry has %d bytes: every request on the item bills them", each)
	}
}

func TestCostOfALongLine(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{Lease: 10 * time.Minute}) // renewals would be writes
	const waiters, turnTime = 50, 20 * time.Millisecond
	head := lock(t, q, "door")
	var waiting []*ticket.Ticket
	for range waiters {
		waiting = append(waiting, join(t, q, "door"))
	}
	b.Count.Reset()
	begun := time.Now()
	var (
		work  sync.WaitGroup
		mu    sync.Mutex
		stood time.Duration // guarded by mu: waiting, of all together
	)
	for _, k := range waiting {
		work.Go(func() {
			turn, err := k.Wait(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			stood += time.Since(begun)
			mu.Unlock()
			time.Sleep(turnTime) // the work
			done(t, turn)
		})
	}
	time.Sleep(500 * time.Millisecond) // the first turn is long
	done(t, head)
	work.Wait()
	took, reads, writes := time.Since(begun), b.Count.Count("GetItem"), b.Count.Count("UpdateItem")
	t.Logf("%d waiters, turns of %v, %v in all: %.1f reads and %.1f writes per waiter, %.1f requests per waiter and second of waiting, %v between turns",
		waiters, turnTime, took.Round(time.Millisecond), float64(reads)/waiters, float64(writes)/waiters,
		float64(reads+writes)/stood.Seconds(), ((took-500*time.Millisecond)/waiters - turnTime).Round(time.Millisecond/10))
	if writes != waiters+1 {
		t.Errorf("%d writes, want one for each turn", writes)
	}
	if most := waiters * 40; reads > most {
		t.Errorf("%d reads, want at most %d", reads, most)
	}
}

// hold is what a process that is to be killed does: it locks, and tells so.
func hold(args []string) error {
	q, err := ticket.New(rig.Client(), args[0], short)
	if err != nil {
		return err
	}
	if _, err := q.Lock(context.Background(), "door"); err != nil {
		return err
	}
	fmt.Println("locked")
	select {}
}

func TestS4_4_AKilledProcessIsPassedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cmd := rig.Child(t, b.Table)
	out := rig.Must(cmd.StdoutPipe())(t)
	rig.Is(t, cmd.Start())
	word := make([]byte, len("locked\n"))
	if _, err := out.Read(word); err != nil || !strings.HasPrefix(string(word), "locked") {
		t.Fatalf("%q, %v", word, err)
	}
	q := b.queue(t, short)
	k := join(t, q, "door")
	if at, err := k.Position(t.Context()); at != 1 || err != nil {
		t.Errorf("position %d, %v", at, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	turn := rig.Must(k.Wait(t.Context()))(t)
	done(t, turn)
	wantEmpty(t, b, "door")
}
