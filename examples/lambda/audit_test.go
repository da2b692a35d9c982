package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestTheAuditFindsWhatIsWrong plays the events in this process, and then spoils one
// thing at a time.
func TestTheAuditFindsWhatIsWrong(t *testing.T) {
	files, err := readEvents()
	if err != nil {
		t.Fatal(err)
	}
	dead, client, table := played(t, files)
	faults := func(dead map[string]events.SQSMessage) string {
		t.Helper()
		found, err := audit(t.Context(), client, table, files, dead)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(found, "\n")
	}
	if found := faults(dead); found != "" {
		t.Fatalf("nothing is wrong, and found is %s", found)
	}
	poison := event(t, "07-poison").Records
	without := maps.Clone(dead)
	delete(without, poison[0].MessageId)
	if found, want := faults(without), "message "+poison[0].MessageId+" cannot be read"; !strings.Contains(found, want) {
		t.Errorf("a dead letter too few: found %q", found)
	}
	tooMany := maps.Clone(dead)
	tooMany[poison[4].MessageId] = poison[4]
	if found, want := faults(tooMany), "message "+poison[4].MessageId+" is with the dead letters"; !strings.Contains(found, want) {
		t.Errorf("a dead letter too many: found %q", found)
	}
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	for _, c := range []struct {
		name, account, attribute string
		value                    types.AttributeValue // nil: deletes the account
		says                     string
	}{
		{"a transfer of nothing", "flo", "version", number("4"), "account flo is"},
		{"a lock", "cid", "lockedBy", &types.AttributeValueMemberS{Value: "ghost"}, "account cid is"},
		{"a cent", "ann", "cents", number("1"), "account ann is"},
		{"a stranger", "zoe", "cents", number("1"), "account zoe is"},
		{"an account lost", "bob", "", nil, "account bob is missing"},
	} {
		key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: c.account}}
		var err error
		if c.value == nil {
			_, err = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
		} else {
			_, err = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: aws.String("SET #a = :v"),
				ExpressionAttributeNames: map[string]string{"#a": c.attribute}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": c.value}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if found := faults(dead); !strings.Contains(found, c.says) {
			t.Errorf("%s: found %q, want %q", c.name, found, c.says)
		}
	}
}

// played has the events taken by a function of this process, and returns the dead
// letters.
func played(t *testing.T, files []delivery) (dead map[string]events.SQSMessage, client *dynamodb.Client, table string) {
	t.Helper()
	f, asked := prepared(t)
	q := newQueue()
	for _, file := range files {
		q.put(file.name, file.records)
	}
	go func() {
		q.open.Wait()
		close(q.ready)
	}()
	for d := range q.ready {
		again := failed(t.Context(), t, f, events.SQSEvent{Records: d.records})
		q.settle(d, func(id string) bool { return slices.Contains(again, id) })
	}
	return q.dead, asked.client, asked.table
}
