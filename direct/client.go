package direct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrOption is why a client has to be asked by its methods: one of its options may ask
// for something that happens in the SDK's middleware. The text names it.
var ErrOption = errors.New("direct: the client has an option that takes effect in the SDK's middleware")

// Sender is a client whose GetItem and UpdateItem are sent without the SDK's
// middleware. All else is the SDK's, and so are the calls of others than Dynahold.
type Sender struct {
	*dynamodb.Client
	path *path
}

// Client returns a client for every package of Dynahold. It is safe for concurrent use.
// With [ErrOption] use the client itself.
func Client(client *dynamodb.Client) (*Sender, error) {
	if client == nil {
		return nil, errors.New("direct: there is no client")
	}
	o := client.Options()
	if name := doubtful(&o); name != "" {
		return nil, fmt.Errorf("%w: %s", ErrOption, name)
	}
	p := &path{given: o, protocol: o.Protocol}
	p.given.Protocol = &protocol{o.Protocol}
	return &Sender{client, p}, nil
}

// GetItem is as of [dynamodb.Client].
func (s *Sender) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c := s.begin(getItem, options)
	if c == nil || in == nil || in.TableName == nil || in.Key == nil {
		return s.Client.GetItem(ctx, in, options...) // which refuses it, or is asked by others
	}
	out := &dynamodb.GetItemOutput{}
	left, err := c.send(ctx, in, out)
	if left != nil {
		out, err = s.Client.GetItem(left, in, c.bySDK)
		err = c.learn(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateItem is as of [dynamodb.Client].
func (s *Sender) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c := s.begin(updateItem, options)
	if c == nil || in == nil || in.TableName == nil || in.Key == nil {
		return s.Client.UpdateItem(ctx, in, options...)
	}
	out := &dynamodb.UpdateItemOutput{}
	left, err := c.send(ctx, in, out)
	if left != nil {
		out, err = s.Client.UpdateItem(left, in, c.bySDK)
		err = c.learn(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// call is one request of Dynahold.
type call struct {
	path    *path
	op      operation
	options dynamodb.Options // of the call

	credentials *drawnCredentials // nil: not asked yet
	token       *drawnToken       // nil: not asked yet
	happened    *happened         // nil: nothing was sent yet
	shown       *shown            // the SDK's request, as an example; nil: none is wanted
}

// begin reads the options of a call; nil: it is not one of Dynahold's, which has one
// option alone, by which it puts one value in the place of both the HTTP client and the
// retryer. Nobody can tell what the options of others ask for.
func (s *Sender) begin(op operation, options []func(*dynamodb.Options)) *call {
	if len(options) != 1 {
		return nil
	}
	c := &call{path: s.path, op: op, options: s.path.given}
	options[0](&c.options)
	retryer, ok := c.options.HTTPClient.(aws.RetryerV2)
	if given, is := c.options.Retryer.(aws.RetryerV2); !ok || !is || given != retryer || given.MaxAttempts() != 1 {
		return nil
	}
	return c
}

// send sends a request. A context says that the SDK has to make it, on that context, or
// to judge what came of it: then and only then it is not in out, nor the condition that
// failed.
func (c *call) send(ctx context.Context, in smithy.Serializable, out smithy.Deserializable) (context.Context, error) {
	p := c.path
	if !p.open(c.op) || ctx.Err() != nil {
		return ctx, nil //nolint:nilerr // the SDK tells it
	}
	body, err := c.written(ctx, in)
	if err != nil {
		return ctx, nil //nolint:nilerr // the SDK tells that too
	}
	if !c.draw(ctx) {
		return ctx, nil
	}
	req := p.request(ctx, c.op, body, &c.credentials.credentials)
	if req == nil {
		return ctx, nil
	}
	h := &happened{}
	h.resp, h.err = c.options.HTTPClient.Do(req) //nolint:bodyclose // read closes it, or the SDK
	if h.err == nil && h.resp != nil {
		p.heed(h.resp)
		if read, err := c.read(ctx, h.resp, out); read {
			_ = c.token.release(err)
			return nil, err
		}
	}
	c.happened = h
	return &undisturbed{ctx, &h.told}, nil
}

// written is the body of a request.
func (c *call) written(ctx context.Context, in smithy.Serializable) ([]byte, error) {
	req := &smithyhttp.Request{Request: &http.Request{}}
	if err := c.options.Protocol.SerializeRequest(context.WithValue(ctx, bodyAlone{}, true), described[c.op].schema, in, req); err != nil {
		return nil, err
	}
	if b, ok := req.GetStream().(interface {
		io.ReaderAt
		Size() int64
	}); ok {
		text := make([]byte, b.Size())
		_, err := b.ReadAt(text, 0)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return text, err
	}
	return io.ReadAll(req.GetStream())
}

// draw asks the client for what a request needs, once: the SDK, if it has to make the
// request after all, is given the same.
func (c *call) draw(ctx context.Context) bool {
	c.token = &drawnToken{}
	c.token.release, c.token.err = c.options.Retryer.(aws.RetryerV2).GetAttemptToken(ctx)
	if c.token.err != nil {
		return false
	}
	c.credentials = &drawnCredentials{from: c.options.Credentials}
	c.credentials.credentials, c.credentials.err = c.options.Credentials.Retrieve(ctx)
	return c.credentials.err == nil
}

// read reads a reply to its end: into out, or as the condition that failed. If it is
// neither its body is as it was.
func (c *call) read(ctx context.Context, resp *http.Response, out smithy.Deserializable) (read bool, failed error) {
	body, watched := bodies.Get().(*bytes.Buffer), resp.Body
	body.Reset()
	_, cut := body.ReadFrom(watched)
	_ = watched.Close()
	if cut == nil && body.Len() > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
		err := c.path.decode(ctx, c.op, resp, out)
		if failed := new(types.ConditionalCheckFailedException); err == nil || errors.As(err, &failed) {
			// Whoever has kept the response finds its body read to the end.
			if body.Cap() <= ordinary {
				bodies.Put(body)
			}
			if err != nil {
				err = &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: described[c.op].name, Err: err}
			}
			return true, err
		}
	}
	resp.Body = io.NopCloser(&recorded{bytes.NewReader(body.Bytes()), cut})
	return false, nil
}

// bySDK are the options with which the SDK makes a call, or judges what came of it.
func (c *call) bySDK(o *dynamodb.Options) {
	o.HTTPClient, o.Retryer, o.Protocol = c, c.options.Retryer, c.options.Protocol
	if c.token != nil {
		o.Retryer = &once{c.options.Retryer.(aws.RetryerV2), c.token}
	}
	if c.credentials != nil {
		o.Credentials = c.credentials
	}
}

// Do is the HTTP client of a request that the SDK makes.
func (c *call) Do(req *http.Request) (*http.Response, error) {
	if c.happened != nil && !c.happened.told.Swap(true) {
		return c.happened.resp, c.happened.err
	}
	var s *shown
	if !c.path.open(c.op) {
		s = c.path.show(req)
	}
	resp, err := c.options.HTTPClient.Do(req)
	if s != nil && err == nil && resp != nil {
		s.answer, c.shown = resp, s
	}
	return resp, err
}

// learn ends a call that the SDK has made: a success is an example for those that are
// sent directly.
func (c *call) learn(ctx context.Context, err error) error {
	if c.happened != nil && !c.happened.told.Load() {
		return errors.Join(errUnread, err)
	}
	if err == nil && c.shown != nil {
		c.path.learn(ctx, c.op, c.shown)
	}
	return err
}

var errUnread = errors.New("direct: the SDK has not read what came of the request")
