package ddb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dynahold/dynahold/internal/direct"
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

// written is the body of a request that is sent without the SDK's middleware; nil: the
// SDK has to write it. The SDK sends the same, if it has to send it after all.
func (r *replay) written(in smithy.Serializable) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body != nil {
		return bytesOf(r.body)
	}
	text := direct.Body(in)
	if text != nil {
		r.body = bytes.NewReader(text)
	}
	return text
}

// bytesOf are a copy of the bytes of a body; nil: it cannot be read.
func bytesOf(b body) []byte {
	text := make([]byte, b.Size())
	if _, err := b.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return text
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
