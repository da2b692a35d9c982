package ddb_test

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dynahold/dynahold/internal/ddb"
)

// writes counts the pieces in which requests are sent on a connection.
type writes struct {
	net.Conn
	count *atomic.Int64
}

func (w writes) Write(p []byte) (int, error) {
	w.count.Add(1)
	return w.Conn.Write(p)
}

// A request is one piece on its connection, also when it is repeated.
func TestRequestsAreSentInOnePiece(t *testing.T) {
	var fail atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, err := io.Copy(io.Discard, req.Body)
		switch {
		case err == nil && fail.Swap(false):
			w.WriteHeader(http.StatusInternalServerError)
		case err == nil:
			resp := whole(req)
			maps.Copy(w.Header(), resp.Header)
			_, err = io.Copy(w, resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	var pieces atomic.Int64
	s := plainly(nil, func(o *dynamodb.Options) {
		o.BaseEndpoint = &server.URL
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
			tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return writes{conn, &pieces}, err
			}
		})
	})
	for n := range 3 {
		for _, op := range []string{"UpdateItem", "GetItem"} {
			fail.Store(n == 2)
			granted(t, op, s)
		}
	}
	if pieces.Load() != 8 {
		t.Errorf("%d pieces for 8 requests", pieces.Load())
	}
}

// Package net/http may ask a body for more when the answer is there already, and gives
// the connection up if that fails. The SDK has closed the body by then.
func TestBodiesEndAfterTheAnswer(t *testing.T) {
	var seen *http.Request
	s := plainly(&network{answer: func(_ int, req *http.Request) (*http.Response, error) {
		seen = req
		return whole(req), nil
	}})
	for op := range calls {
		granted(t, op, s)
		if n, err := io.Copy(io.Discard, seen.Body); n != 0 || err != nil {
			t.Errorf("%s: %d bytes more, %v", op, n, err)
		}
	}
}

// A body that cannot be read is not sent in part.
func TestBodiesThatCannotBeRead(t *testing.T) {
	n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
	s := plainly(n, func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("broken", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				req, err := in.Request.(*smithyhttp.Request).SetStream(iotest.ErrReader(io.ErrUnexpectedEOF))
				if err != nil {
					return middleware.FinalizeOutput{}, middleware.Metadata{}, err
				}
				in.Request = req
				return next.HandleFinalize(ctx, in)
			}), middleware.After)
		})
	})
	res := calls["UpdateItem"](t.Context(), s)
	if !errors.Is(res.Err, io.ErrUnexpectedEOF) || res.Outcome != ddb.Refused || n.sent != 0 {
		t.Errorf("%v, outcome %v, %d sent", res.Err, res.Outcome, n.sent)
	}
}

// network is an HTTP client that answers by a function, and counts what it was sent.
type network struct {
	answer func(n int, req *http.Request) (*http.Response, error)
	sent   int
}

func (n *network) Do(req *http.Request) (*http.Response, error) {
	n.sent++
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return n.answer(n.sent-1, req)
}

// whole answers every request as if it were granted.
func whole(req *http.Request) *http.Response {
	body := `{"Attributes":{"id":{"S":"p"}}}`
	if strings.HasSuffix(req.Header.Get("X-Amz-Target"), "GetItem") {
		body = `{"Item":{"id":{"S":"p"}}}`
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"ID"}, "X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10)}}}
}

// plainly is a table over a network.
func plainly(n *network, options ...func(*dynamodb.Options)) *ddb.Table {
	return &ddb.Table{Name: "t", Timeout: time.Second, Classify: asIs, Client: dynamodb.New(
		dynamodb.Options{Region: "eu-west-1", HTTPClient: n, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "c")},
		append([]func(*dynamodb.Options){patience(3, ratelimit.None)}, options...)...)}
}

// calls are operations on one item.
var calls = map[string]func(context.Context, *ddb.Table) ddb.Result{
	"GetItem": func(ctx context.Context, s *ddb.Table) ddb.Result {
		return s.Read(ctx, ddb.Item{"id": ddb.Text("p")}, ddb.Options{})
	},
	"UpdateItem": func(ctx context.Context, s *ddb.Table) ddb.Result {
		in := (&bench{table: s.Name}).add("p")
		in.ReturnValues = types.ReturnValueAllNew
		return s.Update(ctx, in, ddb.Options{NoGrace: true})
	},
}

// granted makes a call that is granted.
func granted(t *testing.T, op string, s *ddb.Table) {
	t.Helper()
	if res := calls[op](t.Context(), s); res.Err != nil {
		t.Fatal(res.Err)
	}
}
