package adoption

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"github.com/dynahold/dynahold/localdb"
)

var (
	engine *localdb.Engine
	client *dynamodb.Client
)

func TestMain(m *testing.M) {
	code := func() int {
		var err error
		if engine, err = localdb.Start(context.Background(), localdb.Config{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer engine.Close()
		client = engine.Client()
		return m.Run()
	}()
	os.Exit(code)
}

func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// oldTable makes a table as it was before the library: without TTL.
func oldTable(t *testing.T, partition string) string {
	t.Helper()
	name := "adoption-" + rand.Text()
	must(client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &partition, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &partition, KeyType: types.KeyTypeHash}},
	}))(t)
	return name
}

// guregu makes a table as guregu/dynamo does, from the tags of a struct.
func guregu(t *testing.T, from any) dynamo.Table {
	t.Helper()
	db := dynamo.NewFromIface(client)
	name := "adoption-" + rand.Text()
	check(t, db.CreateTable(name, from).OnDemand(true).Run(t.Context()))
	return db.Table(name)
}

type row = map[string]types.AttributeValue

// raw is the item as it is stored.
func raw(t *testing.T, table, partition, key string) row {
	t.Helper()
	return must(client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, ConsistentRead: aws.Bool(true), Key: row{partition: text(key)},
	}))(t).Item
}

func put(t *testing.T, table string, item row) {
	t.Helper()
	must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}))(t)
}

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
