package direct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// drawnCredentials are what the client's provider has given for a request.
type drawnCredentials struct {
	credentials aws.Credentials
	err         error
	from        aws.CredentialsProvider
}

// Retrieve implements [aws.CredentialsProvider].
func (d *drawnCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return d.credentials, d.err
}

// ProviderSources implements [aws.CredentialProviderSource]: the SDK tells the service.
func (d *drawnCredentials) ProviderSources() []aws.CredentialSource {
	if from, ok := d.from.(aws.CredentialProviderSource); ok {
		return from.ProviderSources()
	}
	return nil
}

// drawnToken is what the client's policy has given for a request.
type drawnToken struct {
	release func(error) error
	err     error
}

// once is a policy that was asked already.
type once struct {
	aws.RetryerV2
	token *drawnToken
}

// GetAttemptToken implements [aws.RetryerV2].
func (o *once) GetAttemptToken(context.Context) (func(error) error, error) {
	return o.token.release, o.token.err
}

// happened is what came of a request. The SDK is given it for the result of the request
// that it would send.
type happened struct {
	resp *http.Response
	err  error
	told atomic.Bool
}

// undisturbed is a context whose end the SDK must not see before it has been told what
// came of the request: it would not look at it.
type undisturbed struct {
	context.Context
	told *atomic.Bool
}

// Done implements [context.Context].
func (u *undisturbed) Done() <-chan struct{} {
	if u.told.Load() {
		return u.Context.Done()
	}
	return nil
}

// Err implements [context.Context].
func (u *undisturbed) Err() error {
	if u.told.Load() {
		return u.Context.Err()
	}
	return nil
}

// bodies are for replies; who asks for a large one keeps it.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// recorded is a body that was read, with the error at its end.
type recorded struct {
	io.Reader
	err error
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) && r.err != nil {
		err = r.err
	}
	return n, err
}

// bodyAlone is of a context in which nothing of a request is wanted but its body.
type bodyAlone struct{}

var errUnwritten = errors.New("direct: only the SDK can write this body")

// protocol is the SDK's, but that it writes bodies that are wanted alone with fewer
// copies. What the caller has put around it, to replay a body, works for both.
type protocol struct {
	smithyhttp.ClientProtocol
}

// SerializeRequest implements [smithyhttp.ClientProtocol].
func (p *protocol) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, req *smithyhttp.Request) error {
	if ctx.Value(bodyAlone{}) == nil {
		return p.ClientProtocol.SerializeRequest(ctx, schema, in, req)
	}
	text := bodyOf(in)
	if text == nil {
		return errUnwritten
	}
	stream, err := req.SetStream(bytes.NewReader(text))
	if err != nil {
		return err
	}
	*req = *stream
	return nil
}

var (
	_ aws.CredentialsProvider      = (*drawnCredentials)(nil)
	_ aws.CredentialProviderSource = (*drawnCredentials)(nil)
	_ smithyhttp.ClientProtocol    = (*protocol)(nil)
	_ dynamodb.HTTPClient          = (*call)(nil)
)
