package ddb

import (
	"bytes"
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
	body []byte // guarded by mu: nil until the first attempt is serialized; its bytes never change
}

func (r *replay) stored() []byte {
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
		return r.keep(req.GetStream())
	}
	again, err := req.SetStream(bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	*req = *again
	return nil
}

// keep keeps what a serializer has written. The SDK's hand it over in a bytes.Reader,
// which shows it without a copy.
func (r *replay) keep(stream io.Reader) (err error) {
	switch written := stream.(type) {
	case *bytes.Reader:
		if _, err = written.WriteTo((*view)(&r.body)); err == nil {
			_, err = written.Seek(0, io.SeekStart)
		}
	case interface {
		io.ReaderAt
		Size() int64
	}:
		r.body, err = io.ReadAll(io.NewSectionReader(written, 0, written.Size()))
	}
	return err
}

// view is shown bytes that nobody changes.
type view []byte

func (v *view) Write(p []byte) (int, error) {
	*v = p
	return len(p), nil
}
