package fault_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dynahold/dynahold/internal/fault"
)

// seen is what a program can tell from the SDK's error.
type seen struct {
	code    string // of the service's error
	status  int    // of the answer, also of one that could not be read
	errno   syscall.Errno
	dial    bool // the connection was not even made
	cut     bool // the answer ended too early
	decoded bool // false: an answer came and could not be decoded
}

func look(err error) (s seen) {
	var api smithy.APIError
	var reply *smithyhttp.ResponseError
	var op *net.OpError
	var undecoded *smithy.DeserializationError
	if errors.As(err, &api) {
		s.code = api.ErrorCode()
	}
	if errors.As(err, &reply) {
		s.status = reply.HTTPStatusCode()
	}
	errors.As(err, &s.errno)
	s.dial = errors.As(err, &op) && op.Op == "dial"
	s.cut = errors.Is(err, io.ErrUnexpectedEOF)
	s.decoded = !errors.As(err, &undecoded)
	return s
}

// TestWhatTheSDKMakesOfIt: the errors are those that the real client returns,
// so that whoever judges them judges real ones.
func TestWhatTheSDKMakesOfIt(t *testing.T) {
	applied := seen{decoded: true} // as far as the SDK can tell
	want := map[fault.Kind]seen{
		fault.DropRequest:         {errno: syscall.ECONNRESET, decoded: true},
		fault.LoseResponse:        {errno: syscall.ECONNRESET, decoded: true},
		fault.CutResponse:         {status: 200, cut: true},
		fault.Truncate:            {status: 200},
		fault.Error500:            {code: "InternalServerError", status: 500, decoded: true},
		fault.Error500After:       {code: "InternalServerError", status: 500, decoded: true},
		fault.Throttle:            {code: "ProvisionedThroughputExceededException", status: 400, decoded: true},
		fault.TransactionConflict: {code: "TransactionConflictException", status: 400, decoded: true},
		fault.Refuse:              {errno: syscall.ECONNREFUSED, dial: true, decoded: true},
		fault.Empty:               applied,
		fault.EmptyAfter:          applied,
		fault.Resend:              applied,
		fault.LateDuplicate:       applied,
		fault.Delay:               applied,
		fault.DelayResponse:       applied,
	}
	for _, k := range fault.AllKinds() {
		t.Run(k.String(), func(t *testing.T) {
			requests := 0
			s := newServer(t)
			in := fault.New(signed{s}, fault.Config{Script: func(string, int, []byte) fault.Kind { requests++; return k }})
			client := dynamodb.New(dynamodb.Options{
				Region: "local", BaseEndpoint: aws.String(s.URL), HTTPClient: in, Retryer: aws.NopRetryer{},
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			})
			out, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String("t"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "p"}}})
			in.Wait()
			if got := look(err); got != want[k] || (err == nil) != (want[k] == applied) {
				t.Errorf("%+v, want %+v: %v", got, want[k], err)
			}
			empty := k == fault.Empty || k == fault.EmptyAfter
			if err == nil && (len(out.Attributes) == 0) != empty {
				t.Errorf("answer %v", out.Attributes)
			}
			if requests != 1 {
				t.Errorf("%d requests", requests)
			}
		})
	}
}

// signed gives requests the signature that the server expects.
type signed struct{ *server }

func (s signed) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("Authorization", "signature")
	return s.Client().Do(req)
}
