package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

type event struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	At    int64  `dynamodbav:"at" repo:"eventtime"`
	Total int    `dynamodbav:"total"`
}

// streamed is an engine with a table that has a stream.
func streamed(t *testing.T, view types.StreamViewType) *night {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	n := &night{T: t}
	n.is(err)
	t.Cleanup(func() { _ = engine.Close() })
	n.endpoint, n.client = engine.Endpoint(), engine.Client()
	_, err = n.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view},
	})
	n.is(err)
	return n
}

// items are the orders, as one process has them; ahead is how far its clock is.
func (n *night) items(owner string, ahead time.Duration, fair bool) *lockedread.Locker[order] {
	n.Helper()
	table, err := repo.NewTable[order](n.client, "orders", repo.TableConfig{Clock: func() time.Time { return time.Now().Add(ahead) }})
	n.is(err)
	r, err := lockedread.New(table, lockedread.Config{Owner: owner, Lease: time.Minute, Fair: fair})
	n.is(err)
	return r
}

// history is what the tool says of an item, in the order of its changes.
func (n *night) history(id string) (changes []itemChange) {
	n.Helper()
	code, out, errs := n.call("", "item history orders "+id+" -o json")
	if code != exitOK {
		n.Fatalf("code %d: %s", code, errs)
	}
	var d struct{ Changes []itemChange }
	n.is(json.Unmarshal([]byte(out), &d))
	return d.Changes
}

// tells demands that the changes of an item are told by words, one entry for each.
func (n *night) tells(id string, want ...string) {
	n.Helper()
	changes := n.history(id)
	for i := range max(len(changes), len(want)) {
		switch {
		case i >= len(want):
			n.Errorf("%s, change %d is more than was made: %q", id, i, changes[i].Says)
		case i >= len(changes):
			n.Errorf("%s, change %d is missing: %s", id, i, want[i])
		default:
			got := strings.Join(changes[i].Says, "; ")
			for _, words := range strings.Split(want[i], "...") {
				if !strings.Contains(got, words) {
					n.Errorf("%s, change %d: %q lacks %q", id, i, got, words)
				}
			}
			if changes[i].Foreign != strings.Contains(want[i], "does not follow") {
				n.Errorf("%s, change %d: foreign %v: %q", id, i, changes[i].Foreign, got)
			}
		}
	}
}

func TestItemHistory(t *testing.T) {
	n := streamed(t, types.StreamViewTypeNewAndOldImages)
	ctx := t.Context()
	till, clerk, late := n.items("till", 0, true), n.items("clerk", 0, true), n.items("late", time.Hour, false)
	a := repo.Key{Partition: "a"}
	spend := func(_ context.Context, o *order) error { o.Total--; return nil }

	_, err := till.Upsert(ctx, a, func(_ context.Context, o *order) error { o.Total = 9; return nil })
	n.is(err)
	held, err := till.Acquire(ctx, a)
	n.is(err)
	waited := make(chan error)
	go func() {
		second, err := clerk.Acquire(ctx, a)
		if err == nil {
			err = second.Release(ctx)
		}
		waited <- err
	}()
	rig.Await(t, "the clerk stands in the queue", func() bool { return len(n.history("a")) >= 4 })
	spent := held.Item()
	spent.Total--
	_, err = held.Commit(ctx, spent)
	n.is(err)
	n.is(<-waited)
	_, err = till.Acquire(ctx, a)
	n.is(err)
	_, err = late.Acquire(ctx, a) // its clock says that the lease is over
	n.is(err)
	code, _, errs := n.call("y\n", "locks break orders a --token "+n.field("locks show orders a", "token"))
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	_, err = clerk.Update(ctx, a, func(context.Context, *order) error { return repo.Remove })
	n.is(err)
	changes := n.history("a")
	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.Join(c.Says, "; "))
	}
	all := strings.Join(lines, "\n")
	for _, words := range []string{
		"locked by till, token", "created; unlocked by till", "joins the line", "changed: total, version; passed on by till to one from the queue",
		"unlocked by one from the queue", "taken over from till, token", "the lock of late, token", "was broken", "deleted",
	} {
		if !strings.Contains(all, words) {
			t.Errorf("nobody says %q:\n%s", words, all)
		}
	}
	if strings.Contains(all, "does not follow") {
		t.Errorf("a writer of the library is called a foreign one:\n%s", all)
	}

	// Each way to write leaves an id, and who writes by hand does not.
	table, err := repo.NewTable[order](n.client, "orders", repo.TableConfig{})
	n.is(err)
	versions, err := optimistic.New(table, optimistic.Config{})
	n.is(err)
	b := repo.Key{Partition: "b"}
	_, err = versions.Create(ctx, order{ID: "b", Total: 9})
	n.is(err)
	saved, err := versions.Update(ctx, b, spend)
	n.is(err)
	saved.Total--
	_, err = versions.Save(ctx, saved)
	n.is(err)
	_, err = versions.Apply(ctx, b, expression.Add(expression.Name("total"), expression.Value(-1)))
	n.is(err)
	n.is(txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := versions.In(tx).Update(ctx, b, spend)
		return err
	}))
	_, err = versions.Once("m").Update(ctx, b, spend)
	n.is(err)
	_, err = n.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("orders"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "b"}},
		UpdateExpression: aws.String("SET #t = :t"), ExpressionAttributeNames: map[string]string{"#t": "total"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":t": &types.AttributeValueMemberN{Value: "77"}},
	})
	n.is(err)
	n.tells("b", "created", "changed: total, version", "changed: total, version", "changed: total, version", "changed: total, version",
		"changed: total, version...the id of an operation is remembered", "changed: total...by a writer that does not follow the protocol")

	eventTable, err := repo.NewTable[event](n.client, "orders", repo.TableConfig{})
	n.is(err)
	events, err := nolock.New(eventTable, nolock.Config{})
	n.is(err)
	lockedEvents, err := lockedread.New(eventTable, lockedread.Config{})
	n.is(err)
	c := event{ID: "c", At: 1000, Total: 1}
	n.is(events.Put(ctx, c))
	locked, err := lockedEvents.Update(ctx, repo.Key{Partition: "c"}, func(_ context.Context, e *event) error { e.Total = 5; return nil })
	n.is(err)
	c.At, c.Total = locked.At+2000, 2
	n.is(events.Put(ctx, c))
	n.is(events.DeleteAt(ctx, repo.Key{Partition: "c"}, c.At+1000))
	n.tells("c", "created", "locked by", "changed: total; unlocked by", "changed: at, total", "deleted; a tombstone stays")

	n.says("item history orders b", exitOK, "time", "what", "created", "changed: total, version")
	n.says("item history orders b --from "+time.Now().Add(time.Hour).UTC().Format(time.RFC3339), exitOK, "has no change of item")
	n.says("item history orders nobody", exitOK, "has no change of item")
	n.says("item history nowhere a", exitNothing, "there is no table")
	n.says("item history orders a b", exitUsage, "has no sort key")
}

func TestNoHistory(t *testing.T) {
	n := streamed(t, types.StreamViewTypeKeysOnly)
	n.says("item history orders a", exitNothing, "NEW_AND_OLD_IMAGES")
	table, err := repo.NewTable[order](n.client, "silent", repo.TableConfig{})
	n.is(err)
	n.is(table.EnsureTable(t.Context()))
	n.says("item history silent a", exitNothing, "has no stream", "update-table --table-name silent")
}
