package ddb

import (
	"context"
	"io"
	"sync"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// replay is the client's serializer, but for the body: that of the call's first
// attempt serves all of them. The SDK writes maps in random order, and a service
// may compare the bytes of two requests that carry one ClientRequestToken.
//
// It keeps the first body without a copy, and takes effect before the request is
// signed.
type replay struct {
	smithyhttp.ClientProtocol

	mu   sync.Mutex
	body body // guarded by mu: nil until the first attempt is serialized
}

// body is how the SDK's serializers hand over what they have written. Reading it
// at an offset disturbs nobody who still sends it.
type body interface {
	io.ReaderAt
	Size() int64
}

func (r *replay) stored() body {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body
}

// SerializeRequest implements [smithyhttp.ClientProtocol].
func (r *replay) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, req *smithyhttp.Request) error {
	if err := r.ClientProtocol.SerializeRequest(ctx, schema, in, req); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		r.body, _ = req.GetStream().(body)
		return nil
	}
	again, err := req.SetStream(io.NewSectionReader(r.body, 0, r.body.Size()))
	if err != nil {
		return err
	}
	*req = *again
	return nil
}
