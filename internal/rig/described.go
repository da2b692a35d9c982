package rig

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Described answers DescribeTable, and nothing else: no engine has global tables.
type Described struct {
	*dynamodb.Client
	Table types.TableDescription
}

// DescribeTable implements the client.
func (d Described) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &d.Table}, nil
}

// GlobalTable is a table with replicas and the keys, all strings, of these names.
func GlobalTable(consistency types.MultiRegionConsistency, names ...string) Described {
	d := Described{Table: types.TableDescription{TableStatus: types.TableStatusActive, MultiRegionConsistency: consistency,
		Replicas: []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}}}
	for i, name := range names {
		d.Table.KeySchema = append(d.Table.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		d.Table.AttributeDefinitions = append(d.Table.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	return d
}
