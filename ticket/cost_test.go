package ticket_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/localdb"
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
		b.count.Reset()
		turn := lock(t, q, "door")
		done(t, turn)
		if n := b.count.Counts(); n["UpdateItem"] != 2 || b.count.Total() != 2 {
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
	b.count.Reset()
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
	took, reads, writes := time.Since(begun), b.count.Count("GetItem"), b.count.Count("UpdateItem")
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

// The environment of a process that is to be killed.
const (
	childEndpoint = "TICKET_TEST_ENDPOINT"
	childTable    = "TICKET_TEST_TABLE"
)

// child locks, tells so, and waits to be killed.
func child() int {
	e, err := localdb.Start(context.Background(), localdb.Config{Endpoint: os.Getenv(childEndpoint)})
	if err != nil {
		return 2
	}
	q, err := ticket.New(e.Client(), os.Getenv(childTable), short)
	if err != nil {
		return 3
	}
	if _, err := q.Lock(context.Background(), "door"); err != nil {
		return 4
	}
	_, _ = os.Stdout.WriteString("locked\n")
	select {}
}

func TestS4_4_AKilledProcessIsPassedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEndpoint+"="+engine.Endpoint(), childTable+"="+b.table)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	turn, err := k.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done(t, turn)
	wantEmpty(t, b, "door")
}
