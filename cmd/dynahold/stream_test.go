package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// A shard that is closed is read to its end, however many answers before that are empty.
// It comes before the shard that goes on from it, and one that is open ends some day.
func TestAShardThatIsClosedIsReadToItsEnd(t *testing.T) {
	const empty = 2 * emptyAnswers
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ShardId, ShardIterator string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		record := func(id string) string { return `{"eventID":"` + id + `","dynamodb":{}}` }
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		var shard string
		var page int
		_, _ = fmt.Sscanf(in.ShardIterator, "%s %d", &shard, &page)
		switch {
		case operation == "DescribeStream":
			fmt.Fprint(w, `{"StreamDescription":{"StreamViewType":"NEW_AND_OLD_IMAGES","Shards":[{"ShardId":"open","ParentShardId":"closed","SequenceNumberRange":{"StartingSequenceNumber":"2"}},`+
				`{"ShardId":"closed","ParentShardId":"gone","SequenceNumberRange":{"StartingSequenceNumber":"1","EndingSequenceNumber":"1"}}]}}`)
		case operation == "GetShardIterator":
			fmt.Fprintf(w, `{"ShardIterator":"%s 0"}`, in.ShardId)
		case shard == "open" && page == 0:
			fmt.Fprintf(w, `{"Records":[%s],"NextShardIterator":"open 1"}`, record("last"))
		case shard == "closed" && page == empty:
			fmt.Fprintf(w, `{"Records":[%s]}`, record("first"))
		default:
			fmt.Fprintf(w, `{"Records":[],"NextShardIterator":"%s %d"}`, shard, page+1)
		}
	}))
	t.Cleanup(server.Close)
	s := &stream{arn: "arn:aws:dynamodb:us-east-1:1:table/t/stream/1", client: dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", BaseEndpoint: &server.URL})}
	var got []string
	err := s.read(t.Context(), func(r streamtypes.Record) error { got = append(got, aws.ToString(r.EventID)); return nil })
	if err != nil || strings.Join(got, " ") != "first last" {
		t.Errorf("%v, %v", got, err)
	}
}
