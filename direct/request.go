package direct

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// request makes the signed request of an operation; nil: there is no example of it, or
// something in the way, and the SDK has to make it.
func (p *path) request(ctx context.Context, op operation, body []byte, c *aws.Credentials) *http.Request {
	e := p.examples[op].Load()
	if e == nil || body == nil {
		return nil
	}
	// The account may be part of the address.
	if e.account != c.AccountID || e.scheme.session != (c.SessionToken != "") {
		p.examples[op].Store(nil)
		return nil
	}
	url := e.url // an HTTP client may change it
	req := (&http.Request{Method: http.MethodPost, URL: &url, Host: e.host, Header: e.header.Clone(),
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}).WithContext(named{ctx, e.values})
	if tell(ctx, req) != nil {
		return nil
	}
	p.sign(&e.scheme, req, sum(body), c, time.Now())
	return req
}

// tell adds what is new in every request, by the SDK's own steps.
func tell(ctx context.Context, req *http.Request) error {
	in := middleware.BuildInput{Request: &smithyhttp.Request{Request: req}}
	if _, _, err := (awsmiddleware.ClientRequestID{}).HandleBuild(ctx, in, told); err != nil {
		return err
	}
	_, _, err := (&awsmiddleware.RecursionDetection{}).HandleBuild(ctx, in, told)
	return err
}

var told = middleware.BuildHandlerFunc(func(context.Context, middleware.BuildInput) (out middleware.BuildOutput, _ middleware.Metadata, _ error) {
	return
})

// named is a context with what the SDK notes in it.
type named struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (n named) Value(key any) any {
	if v := n.values.Value(key); v != nil {
		return v
	}
	return n.Context.Value(key)
}
