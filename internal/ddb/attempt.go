package ddb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// attempt stands, for one attempt of a call, in the place of the client's
// retryer, HTTP client and serializer: it keeps the SDK from retrying by itself,
// counts the requests that leave the process, looks at the reply, and gives all
// attempts of the call the same bytes.
//
// The client may be a wrapper that gives up a request which goes on behind it.
// So all that the SDK's side writes is guarded, and nothing leaves the process
// any more once the attempt has been judged.
type attempt struct {
	mu       sync.Mutex
	sight                        // guarded by mu: what was seen of it so far
	given    *dynamodb.Options   // guarded by mu: what the SDK runs with; nil: it did not run options
	inner    dynamodb.HTTPClient // guarded by mu: the client's own
	replaced bool                // guarded by mu: an earlier run of options had no effect
	over     bool                // guarded by mu: the attempt was judged

	replay replay // of the call's first body
	first  reply  // room for the usual one
}

// sight is what was seen of an attempt.
type sight struct {
	ran    bool                // the SDK ran the call's options, or they were read beside it
	ours   bool                // and nothing was put in the place of the HTTP client that they set
	sent   int                 // how often the request left the process
	reply  *reply              // the last one, nil without
	led    bool                // another address was asked behind it, for an answer said so
	result middleware.Metadata // of the call's output
	strict bool                // checksums are asked for
	parts  int                 // items of a transaction
	host   string              // endpoint that was asked
	region string
	policy aws.Retryer // the client's own, nil until options ran
}

var (
	_ aws.RetryerV2       = (*attempt)(nil)
	_ dynamodb.HTTPClient = (*attempt)(nil)
)

// next is an attempt of the same call that sends the same bytes.
func (a *attempt) next() *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &attempt{sight: sight{policy: a.policy, host: a.host, region: a.region}, replay: replay{body: a.replay.stored()}}
}

func (a *attempt) options(o *dynamodb.Options) {
	a.mu.Lock()
	defer a.mu.Unlock()
	inner := o.HTTPClient
	o.HTTPClient = a
	if a.over {
		return // Do sends nothing
	}
	if a.given != nil && a.given.HTTPClient != dynamodb.HTTPClient(a) {
		a.replaced = true
	}
	if o.Retryer != nil {
		a.policy = o.Retryer
	}
	a.inner, a.region, a.given = inner, o.Region, o
	a.ran, a.strict = true, !o.DisableValidateResponseChecksum
	o.Retryer = a
	if a.replay.ClientProtocol == nil {
		a.replay.ClientProtocol = o.Protocol
	}
	if a.replay.ClientProtocol != nil {
		o.Protocol = &a.replay
	}
}

var errOver = errors.New("dynahold: the attempt was given up before it was sent")

// Do implements [dynamodb.HTTPClient].
func (a *attempt) Do(req *http.Request) (*http.Response, error) {
	if err := inMemory(req, a.replay.stored()); err != nil {
		return nil, err
	}
	return a.send(req)
}

// inMemory puts a request's body into memory where package net/http can see that it is.
// The SDK hides that it is there already, for which a request is sent in two pieces, and
// closes it when it has the answer: if that was faster than package net/http, which
// asks the body for more at its end, the connection is given up.
//
// What was serialized stays in memory as it is. Whether the body is that, or what a
// middleware has made of it, only its bytes tell.
func inMemory(req *http.Request, serialized []byte) error {
	if req.Body == nil || req.ContentLength <= 0 {
		return nil
	}
	read := bodies.Get().(*bytes.Buffer)
	defer func() {
		if read.Cap() <= mostKept {
			bodies.Put(read)
		}
	}()
	read.Reset()
	_, err := read.ReadFrom(req.Body)
	err = errors.Join(err, req.Body.Close())
	all := serialized
	if !bytes.Equal(read.Bytes(), serialized) {
		all = bytes.Clone(read.Bytes())
	}
	req.Body = io.NopCloser(bytes.NewReader(all))
	return err
}

// bodies has room for bodies that are compared, each up to mostKept bytes.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const mostKept = 64 << 10

// send hands a request to the client's own HTTP client, unless the attempt is over.
func (a *attempt) send(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	if a.over || a.inner == nil {
		a.mu.Unlock()
		return nil, errOver
	}
	a.sent++
	a.host = req.URL.Host
	a.reply = &a.first
	if a.sent > 1 {
		a.reply = new(reply) // somebody may still read the one before
	}
	inner, reply := a.inner, a.reply
	a.mu.Unlock()
	resp, err := inner.Do(req)
	switch {
	case err == nil && resp != nil:
		reply.watch(resp)
	case err != nil && ofAnother(err, req):
		a.mu.Lock()
		a.led = true
		a.mu.Unlock()
	}
	return resp, err
}

// ofAnother reports whether what has failed is another request than the one that was handed
// to an HTTP client: a redirection was followed, so somebody has had ours, and answered.
func ofAnother(err error, req *http.Request) bool {
	var failed *url.Error
	return errors.As(err, &failed) && (!strings.EqualFold(failed.Op, req.Method) || failed.URL != req.URL.Redacted() && failed.URL != req.URL.String())
}

// answered keeps what the SDK notes about the reply to a request that was sent
// out of sight.
func (a *attempt) answered(result middleware.Metadata) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.result = result
}

// took keeps the same of an output. One that lacks what such a request is always
// answered with is not whole.
func (a *attempt) took(out any) error {
	result, whole := contents(out)
	a.answered(result)
	if !whole {
		return &ReplyError{errNoAttributes}
	}
	return nil
}

// of says of how many items a transaction is.
func (a *attempt) of(parts int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parts = parts
}

// judged ends the attempt: from here on nothing is sent for it.
func (a *attempt) judged() sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.ours = a.given != nil && !a.replaced && a.given.HTTPClient == dynamodb.HTTPClient(a)
	return a.sight
}

// left reports whether the request has left the process, as far as anybody saw.
func (a *attempt) left() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent > 0
}

// hidden reports whether requests may have been sent that nobody here saw, or
// were sent more than once: the SDK, or whoever wraps the client, repeats by
// itself, and an error tells of the last request alone.
func (s *sight) hidden() bool { return !s.ran || s.sent > 1 || s.sent == 0 && !s.ours }

// unsent reports whether nothing left the process, for certain.
func (s *sight) unsent() bool { return s.ran && s.ours && s.sent == 0 }

// retryer is the client's policy; a client that does not run options (a
// wrapper that drops them) gets the SDK's standard one.
func (s *sight) retryer() aws.Retryer {
	if s.policy == nil {
		s.policy = retry.NewStandard()
	}
	return s.policy
}

func (a *attempt) IsErrorRetryable(error) bool { return false }
func (a *attempt) MaxAttempts() int            { return 1 }

func (a *attempt) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

func (a *attempt) GetRetryToken(context.Context, error) (func(error) error, error) {
	return noToken, nil
}

func (a *attempt) GetInitialToken() func(error) error { return noToken }

// GetAttemptToken keeps the client's rate limit (adaptive mode) in force.
func (a *attempt) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	a.mu.Lock()
	policy := a.policy
	a.mu.Unlock()
	if v2, ok := policy.(aws.RetryerV2); ok {
		return v2.GetAttemptToken(ctx)
	}
	return noToken, nil
}

func noToken(error) error { return nil }
