package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

type order struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Version int64  `dynamodbav:"version" repo:"version"`
	Total   int    `dynamodbav:"total"`
}

// night is an engine with tables in which things stand still.
type night struct {
	*testing.T
	endpoint string
	client   *dynamodb.Client
	order    *lockedread.Held[order]
	report   *mutex.Lock
	jobs     *jobs.Queue[map[string]int]
	permits  *semaphore.Semaphore      // in the same table
	job      string                    // a dead letter of the resource "orders"
	mail     *jobs.Job[map[string]int] // it runs, and its handler does not come back
	turn     *ticket.Turn              // its owner does not come back
}

// newNight opens it. The leases are so long that nothing is renewed while a test looks twice.
func newNight(t *testing.T) *night {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	n := &night{T: t, endpoint: engine.Endpoint(), client: engine.Client()}
	ctx := t.Context()

	table, err := repo.NewTable[order](n.client, "orders", repo.TableConfig{})
	n.is(err)
	n.is(table.EnsureTable(ctx))
	items, err := lockedread.New(table, lockedread.Config{Owner: "till-1", Lease: time.Hour})
	n.is(err)
	_, err = items.Upsert(ctx, repo.Key{Partition: "1001"}, func(_ context.Context, o *order) error { o.Total = 5; return nil })
	n.is(err)
	n.order, err = items.Acquire(ctx, repo.Key{Partition: "1001"})
	n.is(err)

	locks, err := mutex.New(n.client, "locks", mutex.Config{Owner: "batch-2"})
	n.is(err)
	n.is(locks.EnsureTable(ctx))
	n.report, err = locks.Lock(ctx, "nightly-report")
	n.is(err)

	n.jobs, err = jobs.New[map[string]int](n.client, "jobs", jobs.Config{Retry: jobs.Retry{Attempts: 1}})
	n.is(err)
	n.is(n.jobs.EnsureTable(ctx))
	n.permits, err = semaphore.New(n.client, "jobs", semaphore.Config{Lease: time.Hour})
	n.is(err)
	n.job, err = n.jobs.Enqueue(ctx, "orders", map[string]int{"order": 7})
	n.is(err)
	n.fail()

	mailer, err := jobs.New[map[string]int](n.client, "jobs", jobs.Config{Owner: "mailer-4", Lease: time.Hour})
	n.is(err)
	_, err = mailer.Enqueue(ctx, "mails", map[string]int{"order": 8})
	n.is(err)
	n.mail, err = mailer.Next(ctx, "mails")
	n.is(err)
	_, err = mailer.Enqueue(ctx, "mails", map[string]int{"order": 9})
	n.is(err)

	queue, err := ticket.New(n.client, "queues", ticket.Config{Owner: "press-1", Lease: time.Hour})
	n.is(err)
	n.is(queue.EnsureTable(ctx))
	n.turn, err = queue.Lock(ctx, "printer")
	n.is(err)
	second, err := ticket.New(n.client, "queues", ticket.Config{Owner: "press-2", Lease: time.Hour})
	n.is(err)
	_, err = second.Join(ctx, "printer")
	n.is(err)
	t.Cleanup(func() { _, _ = queue.Close(context.Background()), second.Close(context.Background()) })
	return n
}

func (n *night) is(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// fail takes the next job, which fails for good.
func (n *night) fail() {
	n.Helper()
	job, err := n.jobs.Next(n.Context(), "orders")
	n.is(err)
	n.is(job.Fail(n.Context(), errors.New("order 7 has no customer")))
}

// call runs the tool. answers is what somebody types at the terminal; "": there
// is none.
func (n *night) call(answers, line string) (code int, out, errs string) {
	n.Helper()
	var o, e bytes.Buffer
	c := &console{out: &o, err: &e, width: plainWidth}
	if answers != "" {
		c.in = strings.NewReader(answers)
	}
	code = run(n.Context(), append(strings.Fields(line), "--endpoint", n.endpoint), c, &fake{})
	return code, o.String(), e.String()
}

// says demands a result.
func (n *night) says(line string, code int, words ...string) {
	n.Helper()
	got, out, errs := n.call("", line)
	if got != code {
		n.Errorf("%s: code %d, want %d\n%s%s", line, got, code, out, errs)
	}
	for _, w := range words {
		if !strings.Contains(out+errs, w) {
			n.Errorf("%s does not say %q:\n%s%s", line, w, out, errs)
		}
	}
}

// field is a field of a JSON document that a command prints, or of its first
// element.
func (n *night) field(line, name string) string {
	n.Helper()
	code, out, errs := n.call("", line+" -o json")
	var document map[string]any
	list := []map[string]any{}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	var err error
	if strings.HasPrefix(out, "[") {
		if err = d.Decode(&list); len(list) > 0 {
			document = list[0]
		}
	} else {
		err = d.Decode(&document)
	}
	if code != exitOK || err != nil {
		n.Fatalf("%s: code %d, %v, %s%s", line, code, err, out, errs)
	}
	switch v := document[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	n.Fatalf("%s: no %q in %s", line, name, out)
	return ""
}

func TestItemsAndLocksInWords(t *testing.T) {
	n := newNight(t)
	n.says("item show orders 1001", exitOK, "held by till-1", "unless the holder extends it", "writers")
	n.says("item show locks nightly-report", exitOK, "held by batch-2", "without an end")
	n.says("item show orders 1002", exitNothing, "there is no item", "with the prefixes")
	n.says("locks show orders 1002", exitNothing, "nobody holds", "with the prefixes")
	n.says("item show nowhere 1", exitNothing, "there is no table")
	n.says("item show orders 1 2", exitUsage, "has no sort key")
	n.says("locks list orders", exitOK, "till-1", "1001", "in ")
	n.says("locks list locks", exitOK, "batch-2", "nightly-report", "without an end")
	n.says("locks show locks nightly-report", exitOK, "batch-2")
	n.says("jobs list nowhere", exitNothing)
	n.says("queue list nowhere printer", exitNothing)
	n.says("locks show locks other", exitNothing, "nobody holds")
	n.says("queue list queues printer", exitOK, "has the turn", "waits")
	n.says("queue list queues scanner", exitOK, "nobody stands", `no row of "scanner"`)
	n.says("queue list queues printer --namespace press", exitOK, "nobody stands", `no row of "press/printer"`)

	n.put("orders", map[string]types.AttributeValue{"id": word("2\x1b[2J"), "lockedBy": word("eve\x1b[2J"), "lockTime": &types.AttributeValueMemberN{Value: "1"}})
	code, out, _ := n.call("", "locks list orders")
	if code != exitOK || strings.Contains(out, "\x1b") || !strings.Contains(out, "expired") {
		t.Errorf("code %d, %q", code, out)
	}
}

// The queue of a named lock, and to whom the lock was handed over, are shown as those of
// an item are.
func TestQueueOfANamedLock(t *testing.T) {
	n := newNight(t)
	ctx, cancel := context.WithCancel(t.Context())
	holder, err := mutex.New(n.client, "locks", mutex.Config{Owner: "batch-3", Fair: true})
	n.is(err)
	held, err := holder.Lock(ctx, "backup")
	n.is(err)
	n.says("locks show locks backup", exitOK, "batch-3", "without an end")
	n.says("item show locks backup", exitOK, "held by batch-3")
	if code, out, _ := n.call("", "item show locks backup"); code != exitOK || strings.Contains(out, "wait in line") {
		t.Errorf("the holder waits for itself: %s", out)
	}
	waiter, err := mutex.New(n.client, "locks", mutex.Config{Owner: "batch-4", Fair: true})
	n.is(err)
	left := make(chan struct{})
	go func() { _, _ = waiter.Lock(ctx, "backup"); close(left) }()
	for deadline := time.Now().Add(time.Minute); ; {
		if info, err := holder.Inspect(ctx, "backup"); err == nil && len(info.Waiting) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody stands in the queue")
		}
	}
	n.says("locks show locks backup", exitOK, "batch-3", "1 wait in line")
	n.says("item show locks backup", exitOK, "held by batch-3", "1 wait in line")
	n.says("locks show locks backup -o json", exitOK, `"waiting"`)
	n.put("locks", map[string]types.AttributeValue{"name": word("handed"), "lockedBy": word("next#aaaaaA"), "lockTime": &types.AttributeValueMemberN{Value: "4000000000"},
		"lockLease": &types.AttributeValueMemberN{Value: "1"}, "lockHeld": &types.AttributeValueMemberN{Value: "7"}, "lockToken": &types.AttributeValueMemberN{Value: "9"}})
	n.says("locks show locks handed", exitOK, "handed over")
	cancel()
	<-left
	n.is(held.Unlock(context.WithoutCancel(ctx)))
}

func word(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func (n *night) put(table string, item map[string]types.AttributeValue) {
	n.Helper()
	_, err := n.client.PutItem(n.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	n.is(err)
}

// No hold is ended but that of the token, with somebody's consent.
func TestBreakEndsTheHoldOfItsTokenOnly(t *testing.T) {
	n := newNight(t)
	const line = "locks break locks nightly-report --token "
	token := n.field("locks show locks nightly-report", "token")
	n.says("locks break locks nightly-report", exitUsage, "--token")
	n.says(line+"17 --yes", exitMoved, "batch-2", token)
	n.says("locks break locks other --yes --token "+token, exitNothing, "nobody holds")
	n.says(line+token, exitUsage, "--yes")
	if code, _, errs := n.call("n\n", line+token); code != exitFailed || !strings.Contains(errs, "not agreed to") || !strings.Contains(errs, "batch-2") {
		t.Errorf("code %d, %s", code, errs)
	}
	n.says("locks show locks nightly-report", exitOK, token)
	n.says(line+token+" --yes", exitOK, "broken")
	n.says(line+token+" --yes", exitNothing, "nobody holds")
	n.says("locks list locks --attribute Holder=x", exitUsage, "LockedBy")
	n.says("locks list locks --attribute LockedBy=holder", exitOK, "nobody holds a lock")
}

func TestJobs(t *testing.T) {
	n := newNight(t)
	n.says("jobs list jobs", exitOK, "orders", "dead")
	n.says("jobs list jobs orders", exitOK, "no job stands in the line")
	n.says("jobs dead jobs orders", exitOK, n.job, "order 7 has no customer")
	n.says("jobs show jobs orders "+n.job, exitOK, `{"order":7}`, "order 7 has no customer")
	n.says("jobs show jobs orders nothing", exitNothing)
	n.says("jobs requeue jobs orders nothing", exitNothing)
	n.says("jobs discard jobs orders nothing --yes", exitNothing)
	n.says("jobs discard jobs orders "+n.job, exitUsage, "--yes")
	n.says("jobs requeue jobs orders "+n.job, exitOK, "requeued")
	n.says("jobs list jobs orders", exitOK, n.job, "waits")
	n.fail()
	n.says("jobs discard jobs orders "+n.job+" --yes", exitOK, "discarded")
	n.says("jobs show jobs orders "+n.job, exitNothing)
}

func TestTablesBeforeTheLibraryUsesThem(t *testing.T) {
	n := newNight(t)
	n.says("table describe orders", exitOK, "id (S)", "on expiresAt")
	n.says("table check orders", exitOK, "all 1 items", "lockedBy", "fits")
	n.put("orders", map[string]types.AttributeValue{"id": word("b"), "writers": word("Ann, Bob"), "expiresAt": word("tomorrow"), "lockQueue": word("x"), "total": word("5")})
	n.says("table check orders", exitFound, `writers, for example in {"b"}`, "TableConfig.Attributes.Writers", "Attributes.TTL", "Attributes.LockQueue", "collide with the library's: 3")
	n.says("table check orders --attribute Writers=authors --attribute LockQueue=line --attribute TTL=ends", exitFound, "set TableConfig.Attributes.TTL to expiresAt", "collide with the library's: 1")
	n.says("table check orders --sample 0", exitUsage)
	n.says("table check nowhere", exitNothing)
	n.says("item show orders b", exitOK, "collision", "Writers")
}
