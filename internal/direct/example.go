package direct

import (
	"context"
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

// Shown is a request that the SDK is about to send.
type Shown struct {
	op     Operation
	url    url.URL
	host   string
	header http.Header
	length int64
}

// Show looks at a request of the SDK before it is sent; nil: no example is wanted.
func (p *Path) Show(op Operation, req *http.Request) *Shown {
	if p.examples[op].Load() != nil || p.unequal.Load() >= patience {
		return nil
	}
	return &Shown{op: op, url: *req.URL, host: req.Host, header: req.Header.Clone(), length: req.ContentLength}
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

// Learn takes a request that was answered with success for an example.
func (p *Path) Learn(ctx context.Context, s *Shown, body []byte, resp *http.Response) {
	if !inTime(resp) {
		return
	}
	c, err := p.Options.Credentials.Retrieve(ctx)
	if err != nil {
		return
	}
	signed, err := time.Parse(stamps, s.header.Get(date))
	if err != nil {
		return
	}
	scheme, ok := schemeOf(&s.url, s.host, s.header)
	again := &http.Request{Method: http.MethodPost, Header: s.header.Clone(), ContentLength: s.length}
	p.sign(&scheme, again, sum(body), &c, signed)
	if !ok || again.Header.Get(authorization) != s.header.Get(authorization) || again.Header.Get(token) != s.header.Get(token) {
		p.unequal.Add(1)
		return
	}
	e := &example{url: s.url, host: s.host, header: s.header, scheme: scheme, account: c.AccountID, values: noted(s.op, p.Options.Region)}
	for _, name := range []string{authorization, date, token, invocation, trace} {
		e.header.Del(name)
	}
	// When the caller gives up is told by our clock here, if at all.
	tries, _, _ := strings.Cut(e.header.Get(attempts), "; ttl=")
	e.header.Set(attempts, tries)
	p.examples[s.op].Store(e)
}

// noted is a context with what the SDK notes there of its requests.
func noted(op Operation, region string) context.Context {
	name := described[op].name
	ctx := middleware.WithOperationName(middleware.WithServiceID(context.Background(), dynamodb.ServiceID), name)
	ctx = awsmiddleware.SetOperationName(awsmiddleware.SetServiceID(ctx, dynamodb.ServiceID), name)
	if region != "" {
		ctx = awsmiddleware.SetRegion(ctx, region)
	}
	return ctx
}
