package ddb

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

	"github.com/dynahold/dynahold/internal/direct"
)

// past is the way past the SDK's middleware, for a client that allows it.
type past struct {
	once sync.Once
	path *direct.Path
}

// direct is that way for requests on a key. nil: there is none, as for a client that is
// not the SDK's own but wraps it: it is asked by its methods. A request without a key is
// the SDK's to refuse.
func (t *Table) direct(key Item) *direct.Path {
	t.past.once.Do(func() {
		if c, ok := t.Client.(*dynamodb.Client); ok && c != nil {
			t.past.path = direct.New(c)
		}
	})
	if key == nil {
		return nil
	}
	return t.past.path
}

// drawn is what an attempt has asked of the client before the SDK does, which then is
// given the same: neither the policy nor the provider of credentials is asked twice.
type drawn struct {
	token       func(error) error // nil: not asked
	tokenErr    error
	asked       bool // for credentials
	credentials aws.Credentials
	err         error
	from        aws.CredentialsProvider
}

// Retrieve implements [aws.CredentialsProvider].
func (d *drawn) Retrieve(context.Context) (aws.Credentials, error) { return d.credentials, d.err }

// ProviderSources implements [aws.CredentialProviderSource]: the SDK tells the service.
func (d *drawn) ProviderSources() []aws.CredentialSource {
	if from, ok := d.from.(aws.CredentialProviderSource); ok {
		return from.ProviderSources()
	}
	return nil
}

// happened is what came of a request that was sent directly. The SDK is given it for
// the result of the request that it would send.
type happened struct {
	resp *http.Response
	err  error
	told atomic.Bool
}

// directly makes the attempt without the SDK's middleware, as far as it can be made so.
// A context says that the SDK has to make it, on that context, or to judge what came of
// the request: then and only then it is not in out, nor the condition that failed.
func (a *attempt) directly(ctx context.Context, p *direct.Path, op direct.Operation, in smithy.Serializable, out smithy.Deserializable) (context.Context, error) {
	if p == nil {
		return ctx, nil
	}
	a.opens(p, op)
	if !p.Open(op) || ctx.Err() != nil {
		return ctx, nil //nolint:nilerr // the SDK tells it
	}
	d := a.draw(ctx, p)
	if d.tokenErr != nil || d.err != nil {
		return ctx, nil //nolint:nilerr // the SDK tells that too
	}
	req := p.Request(ctx, op, a.replay.written(in), &d.credentials)
	if req == nil {
		return ctx, nil
	}
	h := &happened{}
	h.resp, h.err = a.send(req) //nolint:bodyclose // read closes it, or the SDK
	if h.err == nil && h.resp != nil {
		p.Heed(h.resp)
		if read, err := a.read(ctx, p, op, h.resp, out); read {
			_ = d.token(err)
			return nil, err
		}
	}
	a.mu.Lock()
	a.happened = h
	a.mu.Unlock()
	return &undisturbed{ctx, &h.told}, nil
}

// draw asks the client for what an attempt needs.
func (a *attempt) draw(ctx context.Context, p *direct.Path) *drawn {
	d := &drawn{}
	if d.token, d.tokenErr = a.GetAttemptToken(ctx); d.tokenErr == nil {
		d.asked = true
		d.credentials, d.err = p.Options.Credentials.Retrieve(ctx)
	}
	a.mu.Lock()
	a.drawn = d
	a.mu.Unlock()
	return d
}

// read reads a reply to its end: into out, or as the condition that failed. If it is
// neither, or not whole, its body is as it was.
func (a *attempt) read(ctx context.Context, p *direct.Path, op direct.Operation, resp *http.Response, out smithy.Deserializable) (read bool, failed error) {
	body, watched := bodies.Get().(*bytes.Buffer), resp.Body
	body.Reset()
	_, cut := body.ReadFrom(watched)
	_ = watched.Close()
	if a.whole() {
		resp.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
		err := p.Decode(ctx, op, resp, out)
		if _, condition := conditionFailed(err); err == nil || condition {
			// Whoever has kept the response finds its body read to the end.
			if body.Cap() <= ordinary {
				bodies.Put(body)
			}
			return true, err
		}
	}
	resp.Body = io.NopCloser(&recorded{bytes.NewReader(body.Bytes()), cut})
	return false, nil
}

// opens prepares the attempt as options do where the SDK makes it.
func (a *attempt) opens(p *direct.Path, op direct.Operation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.path, a.op = p, op
	a.policy, a.inner, a.region = p.Options.Retryer, p.Options.HTTPClient, p.Options.Region
	if a.replay.ClientProtocol == nil {
		a.replay.ClientProtocol = p.Options.Protocol
	}
	a.ran, a.strict = true, !p.Options.DisableValidateResponseChecksum
}

// whole reports whether the reply is.
func (a *attempt) whole() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reply.damaged(a.strict) == nil
}

// bodies are for replies; who asks for a large one keeps it.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const ordinary = 64 << 10

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

// learned ends an attempt of the SDK: a success is an example for requests that are
// sent directly.
func (a *attempt) learned(ctx context.Context, err error) error {
	a.mu.Lock()
	path, shown, resp, h := a.path, a.shown, a.answer, a.happened
	a.mu.Unlock()
	if h != nil && !h.told.Load() {
		return &ReplyError{errors.Join(errUnread, err)}
	}
	if body := a.replay.stored(); err == nil && shown != nil && resp != nil && body != nil {
		path.Learn(ctx, shown, bytesOf(body), resp)
	}
	return err
}

var (
	_ aws.CredentialsProvider      = (*drawn)(nil)
	_ aws.CredentialProviderSource = (*drawn)(nil)
)

var errUnread = errors.New("the SDK has not read it")
