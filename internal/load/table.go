package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// room is what contenders add to an item: a version, a lock, the ids of
// writers. The padding leaves it, so that an item of 1 KB bills one unit.
const room = 384

// batch is how many items one request writes, DynamoDB's limit.
const batch = 25

// counters is the table of one run.
type counters struct {
	client *dynamodb.Client
	name   string
	items  int
	moves  bool // items have a balance
}

func itemID(n int) string { return fmt.Sprintf("item-%06d", n) }

// makeCounters makes a table with items.
func makeCounters(ctx context.Context, client *dynamodb.Client, w Workload, prepare func(map[string]any)) (*counters, error) {
	c := &counters{client, "load-" + rand.Text(), w.Items, w.Touches > 1 || w.Makes}
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &c.name,
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err == nil {
		err = dynamodb.NewTableExistsWaiter(client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &c.name}, time.Minute)
	}
	for first := 0; err == nil && first < w.Items; first += batch {
		err = c.fill(ctx, first, min(first+batch, w.Items), w.Size, prepare)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load: making the table: %w", err), c.drop(ctx))
	}
	return c, nil
}

func (c *counters) fill(ctx context.Context, first, end, size int, prepare func(map[string]any)) error {
	var puts []types.WriteRequest
	for n := first; n < end; n++ {
		plain := map[string]any{"id": itemID(n), "n": 0, "padding": strings.Repeat("x", max(0, size-room))}
		if c.moves {
			plain["balance"] = 0
		}
		if prepare != nil {
			prepare(plain)
		}
		item, err := attributevalue.MarshalMap(plain)
		if err != nil {
			return err
		}
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	for len(puts) > 0 {
		out, err := c.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{c.name: puts}})
		if err != nil {
			return err
		}
		puts = out.UnprocessedItems[c.name]
	}
	return nil
}

// read returns every item's counter, and what all balances add up to. An item
// without a counter is the contender's own.
func (c *counters) read(ctx context.Context) (found map[string]int, balance int, err error) {
	found = make(map[string]int, c.items)
	pages := dynamodb.NewScanPaginator(c.client, &dynamodb.ScanInput{
		TableName:                &c.name,
		ConsistentRead:           aws.Bool(true),
		ProjectionExpression:     aws.String("#id, #n, #balance"),
		ExpressionAttributeNames: map[string]string{"#id": "id", "#n": "n", "#balance": "balance"},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, 0, fmt.Errorf("load: reading the counters: %w", err)
		}
		for _, item := range page.Items {
			var got struct {
				ID      string `dynamodbav:"id"`
				N       *int   `dynamodbav:"n"`
				Balance int    `dynamodbav:"balance"`
			}
			if err := attributevalue.UnmarshalMap(item, &got); err != nil {
				return nil, 0, fmt.Errorf("load: an item is no counter any more: %v: %w", item, err)
			}
			if got.N != nil {
				found[got.ID] = *got.N
				balance += got.Balance
			}
		}
	}
	for n := range c.items {
		if _, there := found[itemID(n)]; !there {
			return nil, 0, fmt.Errorf("load: %s is gone, or has lost its counter", itemID(n))
		}
	}
	return found, balance, nil
}

// drop deletes the table and those beside it, also when the run was cancelled.
func (c *counters) drop(ctx context.Context, beside ...string) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for _, ending := range append([]string{""}, beside...) {
		_, dropped := c.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(c.name + ending)})
		var none *types.ResourceNotFoundException
		if !errors.As(dropped, &none) {
			err = errors.Join(err, dropped)
		}
	}
	return err
}
