package adoption

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// dynamolock stands for cirello.io/dynamolock, which the Go module proxy does not have, and for AWS's lock client for
// Java, of which that is a port: the same rows, written under the same conditions. Its methods have the names and the
// form of cirello's, as far as docs/migration.md uses them. It knows no heartbeat, and takes over from nobody.
type dynamolock struct {
	table, owner string
	lease        string // the Go port writes "20s", the Java client milliseconds
	keeps        bool   // the Go port puts attributes back that it does not know, the Java client drops them
	next         int
}

type oldLock struct{ key, version string }

var errNotGranted = errors.New("lock was not granted")

// AcquireLock reads the row, and writes it if there is none or it is released. Its way to wait is left out, as with
// FailIfLocked.
func (c *dynamolock) AcquireLock(ctx context.Context, key string) (*oldLock, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &c.table, ConsistentRead: aws.Bool(true), Key: row{"key": text(key)}})
	if err != nil {
		return nil, err
	}
	if _, released := out.Item["isReleased"]; out.Item != nil && !released {
		return nil, errNotGranted
	}
	c.next++
	lock := &oldLock{key, c.owner + time.Unix(int64(c.next), 0).UTC().Format(time.TimeOnly)}
	item := row{"key": text(key), "ownerName": text(c.owner), "leaseDuration": text(c.lease), "recordVersionNumber": text(lock.version)}
	if data, ok := out.Item["data"]; ok {
		item["data"] = data
	}
	for name, v := range out.Item {
		if _, known := item[name]; c.keeps && !known && name != "isReleased" {
			item[name] = v
		}
	}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &c.table, Item: item,
		ConditionExpression:       aws.String("attribute_not_exists(#k) OR (attribute_exists(#k) AND isReleased = :released)"),
		ExpressionAttributeNames:  map[string]string{"#k": "key"},
		ExpressionAttributeValues: row{":released": text("1")}})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return nil, errNotGranted
	}
	return lock, err
}

// ReleaseLock marks the row as released; it stays.
func (c *dynamolock) ReleaseLock(ctx context.Context, lock *oldLock) (bool, error) {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &c.table, Key: row{"key": text(lock.key)},
		UpdateExpression:          aws.String("SET isReleased = :released"),
		ConditionExpression:       aws.String("attribute_exists(#k) AND recordVersionNumber = :version AND ownerName = :owner"),
		ExpressionAttributeNames:  map[string]string{"#k": "key"},
		ExpressionAttributeValues: row{":released": text("1"), ":version": text(lock.version), ":owner": text(c.owner)}})
	return err == nil, err
}

// eachClient runs a test with both clients, on a table of theirs.
func eachClient(t *testing.T, test func(t *testing.T, table string, open func(owner string) *dynamolock)) {
	for name, c := range map[string]dynamolock{"Go": {lease: "20s", keeps: true}, "Java": {lease: "20000"}} {
		t.Run(name, func(t *testing.T) {
			c.table = oldTable(t, "key")
			test(t, c.table, func(owner string) *dynamolock { d := c; d.owner = owner; return &d })
		})
	}
}
