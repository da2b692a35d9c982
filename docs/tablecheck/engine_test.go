package tablecheck

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

type ensurer interface{ EnsureTable(context.Context) error }

// packages makes, for each table of the templates, what uses it.
var packages = map[string]func(client *dynamodb.Client, name string) (ensurer, error){
	"items": rows[itemRow],
	"mail": func(c *dynamodb.Client, name string) (ensurer, error) {
		return delegate.NewMailTable(c, name, repo.TableConfig{})
	},
	"mutex":  func(c *dynamodb.Client, name string) (ensurer, error) { return mutex.New(c, name, mutex.Config{}) },
	"once":   func(c *dynamodb.Client, name string) (ensurer, error) { return once.New(c, name, once.Config{}) },
	"ticket": func(c *dynamodb.Client, name string) (ensurer, error) { return ticket.New(c, name, ticket.Config{}) },
	"semaphore": func(c *dynamodb.Client, name string) (ensurer, error) {
		return jobs.New[string](c, name, jobs.Config{})
	},
}

func rows[T any](client *dynamodb.Client, name string) (ensurer, error) {
	return repo.NewTable[T](client, name, repo.TableConfig{})
}

type itemRow struct {
	PK string `dynamodbav:"pk" repo:"pk"`
}

// TestPackagesAcceptTheTables makes each table as its template says and lets
// the package verify it.
func TestPackagesAcceptTheTables(t *testing.T) {
	tables, err := checkDocument(readDocument(t))
	if err != nil {
		t.Fatal(err)
	}
	client := localdb.Client(t)
	for name, tab := range tables {
		t.Run(name, func(t *testing.T) {
			if err := accept(t, client, tab); err != nil {
				t.Error(err)
			}
		})
	}
}

// accept makes the table under a fresh name and runs EnsureTable on it, with a
// client that refuses whatever would change the table.
func accept(t *testing.T, client *dynamodb.Client, tab table) error {
	t.Helper()
	name := "tablecheck-" + rand.Text()
	if err := makeTable(t, client, name, tab); err != nil {
		return err
	}
	user, err := packages[tab.Name](readOnly(client), name)
	if err != nil {
		return err
	}
	return user.EnsureTable(t.Context())
}

func makeTable(t *testing.T, client *dynamodb.Client, name string, tab table) error {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingMode(tab.Billing)}
	add := func(k key, role types.KeyType) {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &k.Name, KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: &k.Name, AttributeType: types.ScalarAttributeType(k.Type),
		})
	}
	add(tab.Partition, types.KeyTypeHash)
	if tab.Sort.Name != "" {
		add(tab.Sort, types.KeyTypeRange)
	}
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		return err
	}
	t.Cleanup(func() {
		if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	})
	err := dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, ready)
	if err != nil || tab.TTL == "" {
		return err
	}
	_, err = client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &tab.TTL, Enabled: aws.Bool(true)},
	})
	return err
}

// ready bounds the wait for a new table.
const ready = time.Minute

var errChange = errors.New("EnsureTable wants to change the table of the template")

// readOnly is a client with the rights that docs/tables.md gives for tables
// made by a template.
func readOnly(client *dynamodb.Client) *dynamodb.Client {
	may := []string{"DescribeTable", "DescribeTimeToLive"}
	guard := middleware.InitializeMiddlewareFunc("ReadOnly", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if operation := middleware.GetOperationName(ctx); !slices.Contains(may, operation) {
			return middleware.InitializeOutput{}, middleware.Metadata{}, fmt.Errorf("%w: %s", errChange, operation)
		}
		return next.HandleInitialize(ctx, in)
	})
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { return s.Initialize.Add(guard, middleware.After) })
	})
}
