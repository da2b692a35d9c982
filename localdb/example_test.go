package localdb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/localdb"
)

func ExampleStart() {
	engine, err := localdb.Start(context.Background(), localdb.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = engine.Close() }()

	text, err := storeAndRead(context.Background(), engine.Client())
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(text)
	// Output: hello
}

// storeAndRead uses nothing but the SDK: the client is an ordinary one.
func storeAndRead(ctx context.Context, client *dynamodb.Client) (string, error) {
	table := aws.String("dynahold-localdb-example")
	if _, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash},
		},
	}); err != nil {
		return "", err
	}
	// An endpoint given by the environment outlives the engine's Close.
	defer func() { _, _ = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: table}) }()
	ready := dynamodb.NewTableExistsWaiter(client)
	if err := ready.Wait(ctx, &dynamodb.DescribeTableInput{TableName: table}, time.Minute); err != nil {
		return "", err
	}

	item := map[string]types.AttributeValue{
		"id":   &types.AttributeValueMemberS{Value: "1"},
		"text": &types.AttributeValueMemberS{Value: "hello"},
	}
	if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: item}); err != nil {
		return "", err
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      table,
		Key:            map[string]types.AttributeValue{"id": item["id"]},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", err
	}
	return out.Item["text"].(*types.AttributeValueMemberS).Value, nil
}
