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

// site stands for the environments that are deployed to. It keeps a log of what
// was done to each, in the order in which it happened, and knows nothing of
// dispatchers. It refuses fencing tokens smaller than the greatest that it has
// seen: of all its deployments where only one may be made at once, of the same
// deployment elsewhere.
type site struct {
	client *dynamodb.Client
	table  string
}

// errFenced: the token is smaller than one that the environment has seen.
var errFenced = errors.New("refused: a greater token has been here")

// What is written to the log; refused is what cannot be.
const (
	began   = "began"
	ended   = "ended"
	failed  = "failed"
	refused = "refused"
)

// visit is a line of an environment's log.
type visit struct {
	what, id string
	token    int64
	who      string
}

func (s site) key(environment string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"environment": &types.AttributeValueMemberS{Value: environment}}
}

// log appends a line.
func (s site) log(ctx context.Context, environment string, v visit) error {
	token := "token"
	if limitOf(environment) > 1 {
		token += "-" + v.id
	}
	in := &dynamodb.UpdateItemInput{
		TableName:                &s.table,
		Key:                      s.key(environment),
		UpdateExpression:         aws.String("SET #log = list_append(if_not_exists(#log, :none), :line), #token = :token"),
		ConditionExpression:      aws.String("attribute_not_exists(#token) OR #token <= :token"),
		ExpressionAttributeNames: map[string]string{"#log": "log", "#token": token},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":token": &types.AttributeValueMemberN{Value: strconv.FormatInt(v.token, 10)},
			":none":  &types.AttributeValueMemberL{},
			":line": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{
				Value: fmt.Sprint(v.what, " ", v.id, " ", v.token, " ", v.who)}}},
		},
	}
	_, err := s.client.UpdateItem(ctx, in)
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return errFenced
	}
	return err
}

// provide gives an environment something that deployments need.
func (s site) provide(ctx context.Context, environment, what string) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: s.key(environment), UpdateExpression: aws.String("ADD #has :what"),
		ExpressionAttributeNames:  map[string]string{"#has": "has"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":what": &types.AttributeValueMemberSS{Value: []string{what}}},
	})
	return err
}

// visits reads an environment's log, and what it has.
func (s site) visits(ctx context.Context, environment string) (all []visit, has []string, err error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: s.key(environment), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, nil, err
	}
	if set, ok := out.Item["has"].(*types.AttributeValueMemberSS); ok {
		has = set.Value
	}
	lines, _ := out.Item["log"].(*types.AttributeValueMemberL)
	if lines == nil {
		return nil, has, nil
	}
	for _, v := range lines.Value {
		text, _ := v.(*types.AttributeValueMemberS)
		if text == nil {
			return nil, nil, fmt.Errorf("environment %q: the log has a line that is no text", environment)
		}
		f := strings.Fields(text.Value)
		if len(f) != 4 {
			return nil, nil, fmt.Errorf("environment %q: the log has the line %q", environment, text.Value)
		}
		token, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, visit{f[0], f[1], token, f[3]})
	}
	return all, has, nil
}
