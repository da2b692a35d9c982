package direct

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// bySDK is the body that the SDK writes.
func bySDK(t testing.TB, in smithy.Serializable) string {
	schema := smithy.NewOperationSchema(schemas.UpdateItem, schemas.UpdateItemInput, schemas.UpdateItemOutput)
	req := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if err := dynamodb.New(dynamodb.Options{}).Options().Protocol.SerializeRequest(t.Context(), schema, in, req); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.GetStream())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

type attributes = map[string]types.AttributeValue

// values are of every type, with nothing that has two members in a map, which the SDK
// writes in any order. Without a value both write what is no JSON.
func values(text string, data []byte) []types.AttributeValue {
	all := []types.AttributeValue{
		&types.AttributeValueMemberS{Value: text}, &types.AttributeValueMemberN{Value: text}, &types.AttributeValueMemberB{Value: data}, &types.AttributeValueMemberB{},
		&types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberBOOL{}, &types.AttributeValueMemberNULL{Value: true},
		&types.AttributeValueMemberSS{Value: []string{text, "", text}}, &types.AttributeValueMemberSS{}, &types.AttributeValueMemberNS{Value: []string{text}},
		&types.AttributeValueMemberBS{Value: [][]byte{data, nil, {}}}, &types.AttributeValueMemberM{}, &types.AttributeValueMemberL{},
		&types.AttributeValueMemberM{Value: attributes{}}, &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	}
	all = append(all, &types.AttributeValueMemberL{Value: all})
	for _, v := range all {
		all = append(all, &types.AttributeValueMemberM{Value: attributes{text: v}}, &types.AttributeValueMemberL{Value: []types.AttributeValue{v, v}})
	}
	return all
}

// FuzzBody compares bodies with the SDK's, byte for byte.
func FuzzBody(f *testing.F) {
	for _, text := range []string{"", "a", `"\/`, "\n\r\t\b\f\x00\x1f\x7f", "<&>'", "ä€😀", "\u2028\u2029\u202a", "\ufffd", "\xff", "a\xe2\x80", "\xed\xa0\x80x", `:{[,]}`, strings.Repeat("x", 5_000)} {
		f.Add(text, []byte(text))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		inputs := []smithy.Serializable{&dynamodb.UpdateItemInput{}, &dynamodb.GetItemInput{}, &dynamodb.UpdateItemInput{Key: attributes{}, ExpressionAttributeNames: map[string]string{}}}
		for _, v := range values(text, data) {
			inputs = append(inputs,
				&dynamodb.UpdateItemInput{TableName: &text, Key: attributes{text: v}, UpdateExpression: &text, ConditionExpression: &text, ExpressionAttributeNames: map[string]string{text: text}, ExpressionAttributeValues: attributes{text: v},
					ReturnConsumedCapacity: types.ReturnConsumedCapacity(text), ReturnItemCollectionMetrics: types.ReturnItemCollectionMetricsSize, ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld},
				&dynamodb.GetItemInput{TableName: &text, Key: attributes{text: v}, ConsistentRead: aws.Bool(true), ProjectionExpression: &text, ExpressionAttributeNames: map[string]string{text: text}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
		}
		for _, in := range inputs {
			if want, got := bySDK(t, in), string(bodyOf(in)); got != want {
				t.Fatalf("%.500q, the SDK writes %.500q", got, want)
			}
		}
	})
}

// Many members are written, each with its own name and value.
func TestBodyOfManyMembers(t *testing.T) {
	in := &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: attributes{"a": &types.AttributeValueMemberS{Value: "1"}, "b": &types.AttributeValueMemberN{Value: "2"}},
		ExpressionAttributeNames: map[string]string{"#0": "x", "#1": "y", "#2": "z"}, ExpressionAttributeValues: attributes{}}
	for _, v := range values("v", []byte{1}) {
		in.ExpressionAttributeValues[string(rune('a'+len(in.ExpressionAttributeValues)))] = v
	}
	var want, got any
	if err := json.Unmarshal([]byte(bySDK(t, in)), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(bodyOf(in), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// later is an input with a member of a type that no attribute has today.
type later struct{}

func (later) Serialize(s smithy.ShapeSerializer) {
	s.WriteStruct(schemas.UpdateItemInput)
	s.WriteFloat32(schemas.UpdateItemInput_TableName, 1)
	s.CloseStruct()
}

// What the writer does not know is left to the SDK.
func TestBodyOfALaterType(t *testing.T) {
	if body := bodyOf(later{}); body != nil {
		t.Errorf("%q", body)
	}
	if body := string(bodyOf(&dynamodb.GetItemInput{})); body != "{}" {
		t.Errorf("%q behind it", body)
	}
}
