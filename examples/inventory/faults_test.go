package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

// What follows goes wrong on purpose: tables are tampered with, programs
// interrupted and killed, workers stopped between two steps.

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func TestAuditFindsWhatIsWrong(t *testing.T) {
	engine, prefix := shared(t)
	args := []string{"-input", "-", "-workers", "1", "-keep", "-resume", "-prefix"}
	cases := []struct {
		name, table, attribute, key, field string
		value                              types.AttributeValue // nil deletes the item
		says                               string
	}{
		{"piece-lost", "stock", "product", "tea", "left", number("-1"), "product tea has -1 left, want 0"},
		{"oversold", "stock", "product", "tea", "left", number("-1"), "product tea is oversold"},
		{"locked", "stock", "product", "tea", "lockedBy", text("ghost"), "product tea is still locked by ghost"},
		{"wrong-reject", "orders", "order", "o3", "accepted", &types.AttributeValueMemberBOOL{}, "product tea has 0 left, want 2"},
		{"served-anyway", "stock", "product", "tea", "left", number("3"), "order o2 of 3 was rejected, but 3 of product tea are left"},
		{"no-stock", "stock", "product", "tea", "", nil, "product tea has -5 left, want 0"},
		{"invented", "orders", "order", "o7", "accepted", &types.AttributeValueMemberBOOL{}, "order o7 is not in the input"},
		{"altered", "orders", "order", "o1", "quantity", number("4"), "order o1 is not as it was placed"},
		{"counted-twice", "customers", "customer", "ann", "orders", number("3"), "customer ann has {Customer:ann Orders:3"},
		{"spent", "customers", "customer", "ann", "spent", number("1"), "Spent:1 "},
		{"last", "customers", "customer", "ann", "lastOrder", text("o3"), "LastOrder:o3}, want"},
		{"customer-gone", "customers", "customer", "ann", "", nil, "customer ann is missing"},
		{"stranger", "customers", "customer", "eve", "orders", number("1"), "customer eve has no accepted order"},
		{"old-status", "status", "order", "o1", "status", text("paid"), `order o1 is "paid" by event e3, want "packed" by event e3`},
		{"status-stranger", "status", "order", "o7", "status", text("paid"), "the status of order o7 is not in the input"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mine := prefix + c.name + "-"
			runIt(t.Context(), small, append(args, mine)...).want(t, exitOK)
			table, key := mine+c.table, map[string]types.AttributeValue{c.attribute: text(c.key)}
			var err error
			if c.value == nil {
				_, err = engine.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
			} else {
				update := "SET #f = :v"
				_, err = engine.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: &update,
					ExpressionAttributeNames: map[string]string{"#f": c.field}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": c.value}})
			}
			if err != nil {
				t.Fatal(err)
			}
			checkTampered(t, mine, c.says)
		})
	}
}

// checkTampered audits tables without touching them.
func checkTampered(t *testing.T, prefix, says string) {
	t.Helper()
	in, err := load(t.Context(), "-", reader(small))
	if err != nil {
		t.Fatal(err)
	}
	engine, _ := shared(t)
	s, err := openShop(t.Context(), engine, options{prefix: prefix, resume: true, lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = in, s, says
}

var _ = errors.Is
var _ = os.Getenv
var _ exec.Cmd
var _ context.Context
var _ repo.Key
