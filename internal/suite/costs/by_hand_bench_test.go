package costs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// recorder keeps the first two writes that it is asked for.
type recorder struct {
	*dynamodb.Client
	sent []dynamodb.UpdateItemInput
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if len(r.sent) < 2 {
		r.sent = append(r.sent, *in)
	}
	return r.Client.UpdateItem(ctx, in, o...)
}

// recordedWire keeps the requests that its HTTP client sends, to send them again.
type recordedWire struct {
	dynamodb.HTTPClient
	sent   []*http.Request
	bodies [][]byte
}

func (w *recordedWire) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	w.sent, w.bodies = append(w.sent, req), append(w.bodies, body)
	return w.send(req.Context(), len(w.sent)-1)
}

func (w *recordedWire) send(ctx context.Context, i int) (*http.Response, error) {
	req := w.sent[i].WithContext(ctx)
	req.Body = io.NopCloser(bytes.NewReader(w.bodies[i]))
	return w.HTTPClient.Do(req)
}

// again sends all of them, and reads the answers.
func (w *recordedWire) again(ctx context.Context) error {
	for i := range w.sent {
		resp, err := w.send(ctx, i)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
	}
	return nil
}

// sameRequestsByHand is lockedChangeByHand with the texts, names and values of the
// requests that the library has sent: those texts fixed in the program, those values
// made anew as far as they differ from call to call.
func sameRequestsByHand(ctx context.Context, client *dynamodb.Client, sent []dynamodb.UpdateItemInput) error {
	now := time.Now()
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}}
	me := &types.AttributeValueMemberS{Value: "host/1#" + rand.Text()}
	acquire := sent[0]
	acquire.Key = key
	acquire.ExpressionAttributeValues = maps.Clone(acquire.ExpressionAttributeValues)
	for name, value := range map[string]types.AttributeValue{
		":me":      me,
		":until":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(30*time.Second).Unix(), 10)},
		":floor":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro(), 10)},
		":before":  &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro()-1, 10)},
		":expired": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix()-1, 10)},
	} {
		acquire.ExpressionAttributeValues[name] = value
	}
	out, err := client.UpdateItem(ctx, &acquire)
	if err != nil {
		return err
	}
	item, err := soldByHand(out.Attributes)
	if err != nil {
		return err
	}
	commit := sent[1]
	commit.Key, commit.ExpressionAttributeNames = key, maps.Clone(commit.ExpressionAttributeNames)
	commit.ExpressionAttributeValues = map[string]types.AttributeValue{
		":v0": item["stock"], ":v1": me, ":v2": out.Attributes["lockHeld"],
		":v3": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix(), 10)},
	}
	_, err = client.UpdateItem(ctx, &commit)
	return err
}

// lockedChangeByHand takes, changes and releases as the library does, with short
// expressions fixed in the program and attributevalue for the struct, and judges nothing.
func lockedChangeByHand(ctx context.Context, client *dynamodb.Client) error {
	now := time.Now()
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}}
	me := &types.AttributeValueMemberS{Value: "host/1#" + rand.Text()}
	out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("t"), Key: key,
		UpdateExpression: aws.String("SET lockedBy = :me, lockTime = :until, lockLease = :lease, " +
			"lockToken = if_not_exists(lockToken, :floor) + :one, lockHeld = if_not_exists(lockToken, :floor) + :one, " +
			"lockStolen = if_not_exists(lockHeld, if_not_exists(lockStolen, :floor))"),
		ConditionExpression: aws.String("attribute_exists(id) AND attribute_not_exists(lockStub) AND attribute_not_exists(tombstone) AND " +
			"(attribute_not_exists(lockTime) OR lockTime < :expired)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":me":      me,
			":until":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(30*time.Second).Unix(), 10)},
			":lease":   &types.AttributeValueMemberN{Value: "30"},
			":floor":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro(), 10)},
			":one":     &types.AttributeValueMemberN{Value: "1"},
			":expired": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix()-1, 10)},
		},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return err
	}
	item, err := soldByHand(out.Attributes)
	if err != nil {
		return err
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("t"), Key: key,
		UpdateExpression:    aws.String("SET stock = :stock REMOVE lockedBy, lockTime, lockLease, lockHeld"),
		ConditionExpression: aws.String("lockedBy = :me AND lockHeld = :token AND lockTime > :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":stock": item["stock"], ":me": me, ":token": out.Attributes["lockHeld"],
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix(), 10)},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// soldByHand is an item after the change.
func soldByHand(item map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
	var p product
	if err := attributevalue.UnmarshalMap(item, &p); err != nil {
		return nil, err
	}
	p.Stock--
	return attributevalue.MarshalMap(p)
}
