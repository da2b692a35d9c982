package repo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

type parcel struct {
	ID       string `dynamodbav:"id" repo:"pk"`
	Customer string `dynamodbav:"customer"`
	Sent     int64  `dynamodbav:"sent"`
	Version  int64  `dynamodbav:"version" repo:"version"`
}

// A new table has the indexes that its settings name, and one that is there is told what it
// lacks, of all indexes at once.
func TestIndexes(t *testing.T) {
	r := rig.New(t)
	byCustomer := repo.IndexSchema{Name: "byCustomer", Partition: repo.KeyAttribute{Name: "customer"}, Sort: repo.KeyAttribute{Name: "sent"}}
	byDepot := repo.IndexSchema{Name: "byDepot", Partition: repo.KeyAttribute{Name: "depot", Type: types.ScalarAttributeTypeN}, Sort: repo.KeyAttribute{Name: "id"}} // of another type in the table
	table := rig.Must(repo.NewTable[parcel](r.Client, r.Table, repo.TableConfig{Indexes: []repo.IndexSchema{byCustomer, byDepot}}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	rig.Is(t, table.EnsureTable(t.Context()))
	for _, p := range []parcel{{ID: "a", Customer: "ann", Sent: 2}, {ID: "b", Customer: "ann", Sent: 1}, {ID: "c", Customer: "dynahold:bob", Sent: 3}} {
		rig.Must(r.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.Table, Item: rig.Must(table.Encode(p))(t)}))(t)
	}
	for customer, want := range map[string]string{"ann": "b a", "dynahold:bob": "c"} { // the latter is no key of the table, so nobody's row
		var found []string
		for p, err := range table.Query(t.Context(), customer, repo.Index("byCustomer", "customer", "sent")) {
			rig.Is(t, err)
			found = append(found, p.ID)
		}
		rig.Equal(t, strings.Join(found, " "), want, "found of %q: %v", customer, found)
	}

	plain := rig.Must(repo.NewTable[parcel](r.Client, r.Table, repo.TableConfig{}))(t)
	rig.Is(t, plain.EnsureTable(t.Context())) // that it has more concerns nobody
	bySent := repo.IndexSchema{Name: "bySent", Partition: repo.KeyAttribute{Name: "sent"}}
	other := repo.IndexSchema{Name: "byDepot", Partition: repo.KeyAttribute{Name: "customer"}}
	more := rig.Must(repo.NewTable[parcel](r.Client, r.Table, repo.TableConfig{Indexes: []repo.IndexSchema{byCustomer, bySent, other}}))(t)
	err := more.EnsureTable(t.Context())
	rig.Is(t, err, repo.ErrSchema)
	for _, part := range []string{`"bySent" (sent N): there is none`, `"byDepot" (customer S): its key is another: "byDepot" (depot N, id S)`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "byCustomer") {
		t.Errorf("what is there is told: %v", err)
	}
}

// filling is a table whose index is being filled, for some looks.
type filling struct {
	rig.Described
	looks *int
}

func (f filling) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	desc := f.Table
	*f.looks++
	status := types.IndexStatusCreating
	if *f.looks > 2 {
		status = types.IndexStatusActive
	}
	desc.GlobalSecondaryIndexes = []types.GlobalSecondaryIndexDescription{{IndexName: aws.String("byCustomer"), IndexStatus: status, KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("customer"), KeyType: types.KeyTypeHash}}}}
	return &dynamodb.DescribeTableOutput{Table: &desc}, nil
}

func (f filling) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String("expiresAt")}}, nil
}

// An index that is being filled, which takes long where the table is large, is waited for.
func TestIndexesThatAreBeingFilled(t *testing.T) {
	looks := 0
	f := filling{rig.GlobalTable("", "id"), &looks}
	f.Table.Replicas = nil
	f.Table.AttributeDefinitions = append(f.Table.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("customer"), AttributeType: "S"})
	table := rig.Must(repo.NewTable[parcel](f, "table", repo.TableConfig{Indexes: []repo.IndexSchema{{Name: "byCustomer", Partition: repo.KeyAttribute{Name: "customer"}}}}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	rig.Equal(t, looks, 3, "looks")
}

// An index that leaves attributes out is none for the library.
func TestIndexesThatAreNotWhole(t *testing.T) {
	r := rig.New(t)
	key := []types.KeySchemaElement{{AttributeName: aws.String("customer"), KeyType: types.KeyTypeHash}}
	rig.Must(r.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &r.Table, BillingMode: types.BillingModePayPerRequest, KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions:   []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}, {AttributeName: aws.String("customer"), AttributeType: "S"}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: aws.String("byCustomer"), KeySchema: key, Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}},
	}))(t)
	named := []repo.IndexSchema{{Name: "byCustomer", Partition: repo.KeyAttribute{Name: "customer"}}}
	table := rig.Must(repo.NewTable[parcel](r.Client, r.Table, repo.TableConfig{Indexes: named}))(t)
	err := table.EnsureTable(t.Context())
	rig.Is(t, err, repo.ErrSchema)
	if err == nil || !strings.Contains(err.Error(), "KEYS_ONLY") {
		t.Error(err)
	}
	for name, cfg := range map[string]repo.IndexSchema{
		"no name":        {Partition: repo.KeyAttribute{Name: "customer"}},
		"no key":         {Name: "byCustomer"},
		"one key twice":  {Name: "byCustomer", Partition: repo.KeyAttribute{Name: "customer"}, Sort: repo.KeyAttribute{Name: "customer"}},
		"another type":   {Name: "byCustomer", Partition: repo.KeyAttribute{Name: "customer", Type: types.ScalarAttributeTypeN}},
		"an unknown one": {Name: "byCustomer", Partition: repo.KeyAttribute{Name: "depot", Type: "BOOL"}},
	} {
		if _, err := repo.NewTable[parcel](r.Client, r.Table, repo.TableConfig{Indexes: []repo.IndexSchema{cfg}}); err == nil {
			t.Errorf("%s is taken", name)
		} else {
			rig.Is(t, err, repo.ErrConfig)
		}
	}
	_, err = repo.NewTable[parcel](r.Client, r.Table, repo.TableConfig{Indexes: append(named, named...)})
	rig.Is(t, err, repo.ErrConfig)
}
