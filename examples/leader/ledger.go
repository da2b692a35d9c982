package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ledger is the resource that a leader writes to. It knows nothing of locks: it
// remembers the greatest token that it has seen and refuses smaller ones. Any
// store that can compare two numbers can do the same.
type ledger struct {
	client *dynamodb.Client
	table  string
}

// errFenced: the ledger has seen a greater token.
var errFenced = errors.New("refused: a later leader has written already")

func (l ledger) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "ledger"}}
}

// write appends a line under a token.
func (l ledger) write(ctx context.Context, token int64, who string) error {
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &l.table,
		Key:                      l.key(),
		UpdateExpression:         aws.String("SET #token = :token, #lines = list_append(if_not_exists(#lines, :none), :line)"),
		ConditionExpression:      aws.String("attribute_not_exists(#token) OR #token <= :token"),
		ExpressionAttributeNames: map[string]string{"#token": "token", "#lines": "lines"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":token": &types.AttributeValueMemberN{Value: strconv.FormatInt(token, 10)},
			":none":  &types.AttributeValueMemberL{},
			":line":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: fmt.Sprint(token, " ", who)}}},
		},
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return errFenced
	}
	return err
}

// entry is a line of the ledger.
type entry struct {
	token int64
	who   string
}

func (l ledger) read(ctx context.Context) ([]entry, error) {
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &l.table, Key: l.key(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	lines, _ := out.Item["lines"].(*types.AttributeValueMemberL)
	if lines == nil {
		return nil, nil
	}
	var entries []entry
	for _, v := range lines.Value {
		text, _ := v.(*types.AttributeValueMemberS)
		if text == nil {
			return nil, errors.New("the ledger has a line that is no text")
		}
		token, who, _ := strings.Cut(text.Value, " ")
		n, err := strconv.ParseInt(token, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the ledger has a line without a token: %w", err)
		}
		entries = append(entries, entry{n, who})
	}
	return entries, nil
}

// verify finds where leaders have written side by side.
func verify(entries []entry) (faults []string) {
	whose := map[int64]string{}
	last := int64(0)
	for i, e := range entries {
		if e.token < last {
			faults = append(faults, fmt.Sprintf("line %d of %s: token %d after %d", i, e.who, e.token, last))
		}
		if who, ok := whose[e.token]; ok && who != e.who {
			faults = append(faults, fmt.Sprintf("line %d: token %d of %s and of %s", i, e.token, who, e.who))
		}
		whose[e.token], last = e.who, max(last, e.token)
	}
	return faults
}
