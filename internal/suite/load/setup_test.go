package load_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/localdb"
)

var engine *localdb.Engine

func TestMain(m *testing.M) {
	if name := os.Getenv(programVariable); name != "" {
		load.Main(programs[name])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	var err error
	engine, err = localdb.Start(ctx, localdb.Config{})
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = engine.Close()
	os.Exit(code)
}

func run(t *testing.T, virtual bool, w load.Workload, c load.Contender) load.Result {
	t.Helper()
	r, err := load.New(t, engine).Run(t.Context(), w, c, load.Options{Virtual: virtual})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	return r
}

// both runs a test in virtual and in real time.
func both(t *testing.T, f func(t *testing.T, virtual bool)) {
	for name, virtual := range map[string]bool{"virtual": true, "real": false} {
		t.Run(name, func(t *testing.T) { f(t, virtual) })
	}
}

// written is a contender by hand out of one function.
func written(name string, change func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, inside func(context.Context)) error) load.Contender {
	return load.Contender{Name: name, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			return change(ctx, client, table, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: items[0].ID}}, inside)
		}, nil
	}}
}

// add adds to the counter with one request and no condition.
func add(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, n string) error {
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: key,
		UpdateExpression:          aws.String("ADD #n :n"),
		ExpressionAttributeNames:  map[string]string{"#n": "n"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: n}},
	})
	return err
}

// adding is right and costs one request.
func adding() load.Contender {
	return written("adding", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, inside func(context.Context)) error {
		inside(ctx)
		return add(ctx, c, table, key, "1")
	})
}
