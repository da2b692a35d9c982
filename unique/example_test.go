package unique_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/unique"
)

type customer struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Email   string `dynamodbav:"email" repo:"unique"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// A table has items from before its addresses were unique.
func ExampleClaims_Repair() {
	ctx := context.Background()
	client := rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	table, err := repo.NewTable[customer](client, "example-unique", repo.TableConfig{})
	check(err)
	check(table.EnsureTable(ctx))
	customers, err := optimistic.New(table, optimistic.Config{})
	check(err)
	for id, email := range map[string]string{"ann": "a@example.com", "bob": "b@example.com"} {
		item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}, "email": &types.AttributeValueMemberS{Value: email}}
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table.Name()), Item: item})
		check(err)
	}

	claimed := 0
	for finding, err := range unique.In(table.KeyTable).Repair(ctx) {
		check(err)
		if finding.Done {
			claimed++
		}
	}
	fmt.Println(claimed, "claimed")

	_, err = customers.Create(ctx, customer{ID: "cid", Email: "a@example.com"})
	fmt.Println(err)
	// Output:
	// 2 claimed
	// item {"cid"} in table "example-unique": the value of "email" belongs to item {"ann"}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
