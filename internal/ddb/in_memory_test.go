package ddb_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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

// A request is one piece on its connection, by the client's methods as directly, and
// when it is repeated.
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
	for _, byMethods := range []bool{true, false} {
		var pieces atomic.Int64
		s := plainly(nil, byMethods, func(o *dynamodb.Options) {
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
			t.Errorf("by methods %v: %d pieces for 8 requests", byMethods, pieces.Load())
		}
	}
}

// Package net/http may ask a body for more when the answer is there already, and gives
// the connection up if that fails. The SDK has closed the body by then.
func TestBodiesEndAfterTheAnswer(t *testing.T) {
	var seen *http.Request
	s := plainly(&network{answer: func(_ int, req *http.Request) (*http.Response, error) {
		seen = req
		return whole(req), nil
	}}, true)
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
	s := plainly(n, true, func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("broken", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				req, err := in.Request.(*smithyhttp.Request).SetStream(broken{})
				if err != nil {
					return middleware.FinalizeOutput{}, middleware.Metadata{}, err
				}
				in.Request = req
				return next.HandleFinalize(ctx, in)
			}), middleware.After)
		})
	})
	res := calls["UpdateItem"](t.Context(), s)
	if !errors.Is(res.Err, io.ErrUnexpectedEOF) || res.Outcome != ddb.Refused || len(n.sent) != 0 {
		t.Errorf("%v, outcome %v, %d sent", res.Err, res.Outcome, len(n.sent))
	}
}
