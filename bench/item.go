package main

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is what the peers decode, as a program would.
type item struct {
	ID      string `dynamodbav:"id" dynamo:"id"`
	N       int    `dynamodbav:"n" dynamo:"n"`
	Padding string `dynamodbav:"padding" dynamo:"padding"`
	Version int    `dynamodbav:"version" dynamo:"version"`
}

// account is an item of a change that touches several.
type account struct {
	ID      string `dynamodbav:"id" dynamo:"id" repo:"pk"`
	N       int    `dynamodbav:"n" dynamo:"n"`
	Balance int    `dynamodbav:"balance" dynamo:"balance"`
	Padding string `dynamodbav:"padding" dynamo:"padding"`
	Version int64  `dynamodbav:"version" dynamo:"version" repo:"version"`
}

// move does to the account what a change does to one of its items.
func (a *account) move(by int) {
	a.N++
	a.Balance += by
}

// versioned gives new items their first version.
func versioned(item map[string]any) { item["version"] = 1 }

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": str(id)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
