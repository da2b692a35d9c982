package costs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// product has ten fields, as an item of a shop might.
type product struct {
	ID       string   `dynamodbav:"id" repo:"pk"`
	Name     string   `dynamodbav:"name"`
	Stock    int      `dynamodbav:"stock"`
	Reserved int      `dynamodbav:"reserved"`
	Price    int      `dynamodbav:"price"`
	Shelf    string   `dynamodbav:"shelf"`
	Tags     []string `dynamodbav:"tags"`
	Active   bool     `dynamodbav:"active"`
	Updated  int64    `dynamodbav:"updated"`
	Note     string   `dynamodbav:"note"`
}

var sample = product{"apple", "Apple", 100, 3, 129, "A-17", []string{"fruit", "fresh"}, true, 1700000000, "keep cool"}

// memory answers from memory as DynamoDB would answer a free lock, so that
// only the client's own time is measured.
type memory struct{ acquired []byte }

func newMemory(b *testing.B) *memory {
	item, err := attributevalue.MarshalMap(sample)
	if err != nil {
		b.Fatal(err)
	}
	wire := map[string]any{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			wire[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			wire[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberBOOL:
			wire[name] = map[string]any{"BOOL": v.Value}
		case *types.AttributeValueMemberL:
			wire[name] = map[string]any{"L": []any{map[string]any{"S": "fruit"}, map[string]any{"S": "fresh"}}}
		default:
			b.Fatalf("unexpected %T", v)
		}
	}
	until := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	for name, n := range map[string]string{"lockTime": until, "lockLease": "30", "lockHeld": "1700000000000001", "lockToken": "1700000000000001", "lockStolen": "0"} {
		wire[name] = map[string]any{"N": n}
	}
	wire["lockedBy"] = map[string]any{"S": "host/1#AAAAAAAAAAAAAAAAAAAAAA"}
	body, err := json.Marshal(map[string]any{"Attributes": wire})
	if err != nil {
		b.Fatal(err)
	}
	return &memory{acquired: body}
}

func (m *memory) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	answer := []byte("{}")
	if bytes.Contains(body, []byte(`"ALL_NEW"`)) {
		answer = m.acquired
	}
	return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{},
		ContentLength: int64(len(answer)), Body: io.NopCloser(bytes.NewReader(answer))}, nil
}

func (m *memory) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", HTTPClient: m, BaseEndpoint: aws.String("http://memory.invalid"),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

// BenchmarkLockedChange compares a locked change with two requests written by hand:
// with the shortest texts, and with the texts of the library, whose conditions ask for
// more and which send names beside the texts. All sides run in turn, in blocks that
// end with the garbage collector's work for them, and are compared by the processor's
// time, so that the ratio holds on a noisy machine.
func BenchmarkLockedChange(b *testing.B) {
	client := newMemory(b).client()
	seen := &recorder{Client: newMemory(b).client()}
	table, err := repo.NewTable[product](seen, "table", repo.TableConfig{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := pessimistic.New(table, pessimistic.Config{})
	if err != nil {
		b.Fatal(err)
	}
	key := repo.Key{Partition: "apple"}
	ours := func() error {
		_, err := r.Update(b.Context(), key, func(_ context.Context, p *product) error { p.Stock--; return nil })
		return err
	}
	if err := ours(); err != nil || len(seen.sent) != 2 {
		b.Fatalf("%d requests, %v", len(seen.sent), err)
	}
	sides := []struct {
		name string
		do   func() error
	}{
		{"by-hand", func() error { return lockedChangeByHand(b.Context(), client) }},
		{"same-requests", func() error { return sameRequestsByHand(b.Context(), client, seen.sent) }},
		{"dynahold", ours},
	}
	for _, side := range sides {
		b.Run(side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := side.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("ratio", func(b *testing.B) {
		var byHand, same []float64
		for b.Loop() {
			var spent [3]float64
			for i, side := range sides {
				runtime.GC()
				began := processorTime(b)
				for range 60 {
					if err := side.do(); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				spent[i] = float64(processorTime(b) - began)
			}
			byHand, same = append(byHand, spent[2]/spent[0]), append(same, spent[2]/spent[1])
		}
		slices.Sort(byHand)
		slices.Sort(same)
		b.ReportMetric(byHand[len(byHand)/2], "x-by-hand")
		b.ReportMetric(same[len(same)/2], "x-same-requests")
	})
}

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
	var p product
	if err := attributevalue.UnmarshalMap(out.Attributes, &p); err != nil {
		return err
	}
	p.Stock--
	item, err := attributevalue.MarshalMap(p)
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
	var p product
	if err := attributevalue.UnmarshalMap(out.Attributes, &p); err != nil {
		return err
	}
	p.Stock--
	item, err := attributevalue.MarshalMap(p)
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
