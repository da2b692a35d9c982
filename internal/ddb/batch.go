package ddb

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// BatchReader is what reading many items needs of *dynamodb.Client.
type BatchReader interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// Batch reads items with one request, consistently: those that are there, and the keys that
// the service has left over.
func (t *Table) Batch(ctx context.Context, client BatchReader, keys []Item) (items, left []Item, err error) {
	consistent := true
	in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{t.Name: {Keys: keys, ConsistentRead: &consistent}}}
	err = t.ReadWith(ctx, "BatchGetItem", func(ctx context.Context, o func(*dynamodb.Options)) (any, error) {
		out, err := client.BatchGetItem(ctx, in, o)
		if err != nil {
			return nil, err
		}
		items, left, err = t.batchOf(keys, out)
		return out, err
	})
	return items, left, err
}

// batchOf is what an answer has of keys: each of them at most once, and no other.
func (t *Table) batchOf(keys []Item, out *dynamodb.BatchGetItemOutput) (items, left []Item, err error) {
	asked := make(map[string]bool, len(keys))
	for _, key := range keys {
		asked[t.KeyText(key)] = true
	}
	for name, found := range out.Responses {
		if !t.named(name) {
			return nil, nil, &ReplyError{errAnother}
		}
		items = append(items, found...)
	}
	for _, unread := range out.UnprocessedKeys {
		left = append(left, unread.Keys...)
	}
	for _, item := range slices.Concat(items, left) {
		text := t.KeyText(item)
		if !asked[text] {
			return nil, nil, &ReplyError{errAnother}
		}
		delete(asked, text)
	}
	return items, left, nil
}

// named reports whether the table has a name, as answers have it: an ARN is answered by
// the name in it.
func (t *Table) named(name string) bool { return name == t.Name || strings.HasSuffix(t.Name, "/"+name) }
