package repo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// described answers DescribeTable, and nothing else: no engine has global tables.
type described struct {
	jobs.Client
	table types.TableDescription
}

func (d described) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &d.table}, nil
}

// globalTable is a table with replicas and the keys, all strings, of these names.
func globalTable(consistency types.MultiRegionConsistency, names ...string) described {
	d := described{table: types.TableDescription{TableStatus: types.TableStatusActive, MultiRegionConsistency: consistency,
		Replicas: []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}}}
	for i, name := range names {
		d.table.KeySchema = append(d.table.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		d.table.AttributeDefinitions = append(d.table.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	return d
}

// A global table with strong consistency has neither transactions nor TTL. What
// needs neither works there without asking for them; the rest is refused, not
// left to fail at its first write.
func TestGlobalTables(t *testing.T) {
	type plain struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	type dated struct {
		ID string `dynamodbav:"id" repo:"pk"`
		At int64  `dynamodbav:"at" repo:"eventtime"`
	}
	type sorted struct {
		ID  string `dynamodbav:"id" repo:"pk"`
		Day string `dynamodbav:"day" repo:"sk"`
	}
	strong, eventual := types.MultiRegionConsistencyStrong, types.MultiRegionConsistencyEventual
	ensure := func(table interface{ EnsureTable(context.Context) error }, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		return table.EnsureTable(t.Context())
	}
	plainIn := func(c described) error {
		table, err := repo.NewTable[plain](c, "table", repo.TableConfig{})
		return ensure(table, err)
	}
	sortedIn := func(c described) error {
		table, err := repo.NewTable[sorted](c, "table", repo.TableConfig{})
		return ensure(table, err)
	}
	datedIn := func(c described) error {
		table, err := repo.NewTable[dated](c, "table", repo.TableConfig{})
		return ensure(table, err)
	}
	jobsIn := func(c described) error {
		s, err := jobs.New[string](c, "table", jobs.Config{})
		return ensure(s, err)
	}
	permitsIn := func(c described) error {
		s, err := semaphore.New(c, "table", semaphore.Config{})
		return ensure(s, err)
	}
	for name, c := range map[string]struct{ err, want error }{
		"items, strong":            {plainIn(globalTable(strong, "id")), nil},
		"items, eventual":          {plainIn(globalTable(eventual, "id")), repo.ErrSchema},
		"items, not said":          {plainIn(globalTable("", "id")), repo.ErrSchema},
		"events, strong":           {datedIn(globalTable(strong, "id")), repo.ErrSchema},
		"permits, strong":          {permitsIn(globalTable(strong, "pk", "sk")), nil},
		"jobs, strong":             {jobsIn(globalTable(strong, "pk", "sk")), repo.ErrSchema},
		"another key, as anywhere": {plainIn(globalTable(strong, "key")), repo.ErrSchema},
		"a sort key":               {sortedIn(globalTable(strong, "id", "day")), nil},
		"another sort key":         {sortedIn(globalTable(strong, "id", "hour")), repo.ErrSchema},
		"no sort key":              {sortedIn(globalTable(strong, "id")), repo.ErrSchema},
		"a sort key too many":      {plainIn(globalTable(strong, "id", "day")), repo.ErrSchema},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}
