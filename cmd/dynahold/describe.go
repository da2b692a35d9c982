package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

type tableCommands struct {
	Create   tableCreateCommand   `cmd:"" help:"Create a table for items, or for a package of the library; prints its schema before."`
	Describe tableDescribeCommand `cmd:"" help:"Show what the library needs to know of a table: key, TTL, Regions."`
	Check    tableCheckCommand    `cmd:"" help:"Look whether attributes of a table collide with the library's. Writes nothing."`
}

type tableDescribeCommand struct {
	tableFlags
}

// schemaDocument is how a table is made.
type schemaDocument struct {
	Table        string `json:"table"`
	PartitionKey string `json:"partition_key"`
	SortKey      string `json:"sort_key,omitempty"`
	TTL          string `json:"ttl_attribute"` // "": TTL is off
	Billing      string `json:"billing"`

	Indexes []indexDocument `json:"secondary_indexes,omitempty"`
}

type indexDocument struct {
	Index        string `json:"index"`
	PartitionKey string `json:"partition_key"`
	SortKey      string `json:"sort_key,omitempty"`
}

type tableDocument struct {
	schemaDocument
	Status   string `json:"status"`
	Items    int64  `json:"items"` // as DynamoDB last counted them
	Bytes    int64  `json:"bytes"`
	Indexes  int    `json:"indexes"`
	Replicas int    `json:"replicas"`
	Strong   bool   `json:"strongly_consistent_regions"`
}

// Run implements the command.
func (cmd *tableDescribeCommand) Run(ctx context.Context, c *console) error {
	t, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	ttl, err := t.ttl(ctx)
	if err != nil {
		return err
	}
	d := tableDocument{
		schemaDocument: schemaDocument{Table: cmd.Table, PartitionKey: keyName(t.schema.Partition), SortKey: keyName(t.schema.Sort), TTL: ttl, Billing: string(types.BillingModeProvisioned)},
		Status:         string(t.desc.TableStatus), Items: aws.ToInt64(t.desc.ItemCount), Bytes: aws.ToInt64(t.desc.TableSizeBytes),
		Indexes:  len(t.desc.GlobalSecondaryIndexes) + len(t.desc.LocalSecondaryIndexes),
		Replicas: len(t.desc.Replicas), Strong: t.desc.MultiRegionConsistency == types.MultiRegionConsistencyStrong,
	}
	if b := t.desc.BillingModeSummary; b != nil {
		d.Billing = string(b.BillingMode)
	}
	if cmd.Output == "json" {
		return c.printJSON(d)
	}
	return c.print(factsText(append(d.facts(), [][2]string{
		{"status", d.Status}, {"items", fmt.Sprintf("%d, %d bytes, as DynamoDB last counted them", d.Items, d.Bytes)},
		{"indexes", fmt.Sprint(d.Indexes)}, {"Regions", d.regions()},
	}...)))
}

func (d schemaDocument) facts() [][2]string {
	facts := [][2]string{{"table", d.Table}, {"partition key", d.PartitionKey}}
	if d.SortKey != "" {
		facts = append(facts, [2]string{"sort key", d.SortKey})
	}
	removal := "on " + d.TTL
	if d.TTL == "" {
		removal = "off: stubs and tombstones of the library stay until somebody deletes them"
	}
	facts = append(facts, [2]string{"TTL", removal}, [2]string{"billing", d.Billing})
	for _, x := range d.Indexes {
		keys := x.PartitionKey
		if x.SortKey != "" {
			keys += ", " + x.SortKey
		}
		facts = append(facts, [2]string{"index", x.Index + ": " + keys})
	}
	return facts
}

func (d tableDocument) regions() string {
	switch {
	case d.Strong:
		return "several, strongly consistent: no transactions and no TTL there, so neither jobs nor types with an event time"
	case d.Replicas > 0:
		return "several, eventually consistent: locks hold within one Region only (TableConfig.AllowReplicas)"
	}
	return "one"
}

func keyName(a repo.KeyAttribute) string {
	if a.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", a.Name, a.Type)
}

// ttl is the attribute on which the TTL is; "" if it is off, as it is on a table
// that cannot have one.
func (t *opened) ttl(ctx context.Context) (string, error) {
	if t.desc.MultiRegionConsistency == types.MultiRegionConsistencyStrong {
		return "", nil
	}
	out, err := t.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.name})
	if err != nil || out.TimeToLiveDescription == nil {
		return "", err
	}
	return aws.ToString(out.TimeToLiveDescription.AttributeName), nil
}
