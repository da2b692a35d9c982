package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
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
}

func itemID(n int) string { return fmt.Sprintf("item-%06d", n) }

// makeCounters makes a table with items.
func makeCounters(ctx context.Context, client *dynamodb.Client, w Workload, prepare func(map[string]any)) (*counters, error) {
	c := &counters{client, "load-" + rand.Text(), w.Items}
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

// read returns every item's counter.
func (c *counters) read(ctx context.Context) (map[string]int, error) {
	found := make(map[string]int, c.items)
	pages := dynamodb.NewScanPaginator(c.client, &dynamodb.ScanInput{
		TableName:                &c.name,
		ConsistentRead:           aws.Bool(true),
		ProjectionExpression:     aws.String("#id, #n"),
		ExpressionAttributeNames: map[string]string{"#id": "id", "#n": "n"},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("load: reading the counters: %w", err)
		}
		for _, item := range page.Items {
			id, isText := item["id"].(*types.AttributeValueMemberS)
			n, isNumber := item["n"].(*types.AttributeValueMemberN)
			if !isText || !isNumber {
				return nil, fmt.Errorf("load: an item has lost its counter: %v", item)
			}
			count, err := strconv.Atoi(n.Value)
			if err != nil {
				return nil, fmt.Errorf("load: counter of %s: %w", id.Value, err)
			}
			found[id.Value] = count
		}
	}
	if len(found) != c.items {
		return nil, fmt.Errorf("load: the table has %d items, it had %d", len(found), c.items)
	}
	return found, nil
}

// drop deletes the table, also when the run was cancelled.
func (c *counters) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err := c.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &c.name})
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		return nil
	}
	return err
}
