package direct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// example is what the requests of an operation have in common.
type example struct {
	url     url.URL
	host    string
	header  http.Header
	scheme  scheme
	values  context.Context // what the SDK notes for an HTTP client that asks
	account string
}

// shown is a request that the SDK has sent.
type shown struct {
	url    url.URL
	host   string
	header http.Header
	body   []byte
	answer *http.Response
}

// show looks at a request of the SDK before it is sent; nil: no example is wanted.
func (p *path) show(req *http.Request) *shown {
	if p.unequal.Load() >= patience || req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		req.Body = io.NopCloser(&recorded{bytes.NewReader(body), err})
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return &shown{url: *req.URL, host: req.Host, header: req.Header.Clone(), body: body}
}

// patience is how many examples may carry another signature, as one does whose
// credentials were renewed meanwhile.
const patience = 8

const (
	invocation    = "Amz-Sdk-Invocation-Id"
	attempts      = "Amz-Sdk-Request"
	authorization = "Authorization"
	date          = "X-Amz-Date"
	token         = "X-Amz-Security-Token"
	trace         = "X-Amzn-Trace-Id"
)

// learn takes a request that was answered with success for an example.
func (p *path) learn(ctx context.Context, op operation, s *shown) {
	if p.open(op) || !inTime(s.answer) {
		return
	}
	c, err := p.given.Credentials.Retrieve(ctx)
	if err != nil {
		return
	}
	signed, err := time.Parse(stamps, s.header.Get(date))
	if err != nil {
		return
	}
	scheme, ok := schemeOf(&s.url, s.host, s.header)
	again := &http.Request{Method: http.MethodPost, Header: s.header.Clone(), ContentLength: int64(len(s.body))}
	p.sign(&scheme, again, sum(s.body), &c, signed)
	if !ok || again.Header.Get(authorization) != s.header.Get(authorization) || again.Header.Get(token) != s.header.Get(token) {
		p.unequal.Add(1)
		return
	}
	e := &example{url: s.url, host: s.host, header: s.header, scheme: scheme, account: c.AccountID, values: noted(op, p.given.Region)}
	for _, name := range []string{authorization, date, token, invocation, trace} {
		e.header.Del(name)
	}
	// When the caller gives up is told by our clock here, if at all.
	tries, _, _ := strings.Cut(e.header.Get(attempts), "; ttl=")
	e.header.Set(attempts, tries)
	p.examples[op].Store(e)
}

// noted is a context with what the SDK notes there of its requests.
func noted(op operation, region string) context.Context {
	name := described[op].name
	ctx := middleware.WithOperationName(middleware.WithServiceID(context.Background(), dynamodb.ServiceID), name)
	ctx = awsmiddleware.SetOperationName(awsmiddleware.SetServiceID(ctx, dynamodb.ServiceID), name)
	if region != "" {
		ctx = awsmiddleware.SetRegion(ctx, region)
	}
	return ctx
}
