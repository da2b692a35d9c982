package direct

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// operation is one of those that are sent without the SDK's middleware.
type operation int

// The operations.
const (
	getItem operation = iota
	updateItem
	operations int = iota
)

var described = [operations]struct {
	name   string
	schema *smithy.OperationSchema
}{
	getItem:    {"GetItem", smithy.NewOperationSchema(schemas.GetItem, schemas.GetItemInput, schemas.GetItemOutput)},
	updateItem: {"UpdateItem", smithy.NewOperationSchema(schemas.UpdateItem, schemas.UpdateItemInput, schemas.UpdateItemOutput)},
}

// path is the way of one client's requests.
type path struct {
	given    dynamodb.Options          // of the client; not to be changed
	protocol smithyhttp.ClientProtocol // the client's own

	examples [operations]atomic.Pointer[example]
	derived  atomic.Pointer[derived]
	unequal  atomic.Int32 // examples whose signature was not the client's signer's
}

// open reports whether there is an example of an operation's requests.
func (p *path) open(op operation) bool { return p.examples[op].Load() != nil }

// decode reads a reply as the SDK does: what it says, or the error that it is.
func (p *path) decode(ctx context.Context, op operation, resp *http.Response, out smithy.Deserializable) error {
	return p.protocol.DeserializeResponse(ctx, described[op].schema, dynamodb.TypeRegistry, &smithyhttp.Response{Response: resp}, out)
}

// heed looks at the service's clock in a reply: while it is far from ours the SDK makes
// the requests.
func (p *path) heed(resp *http.Response) {
	if !inTime(resp) {
		for op := range p.examples {
			p.examples[op].Store(nil)
		}
	}
}

// apart is how far the service's clock may be from ours. A signature is good for five
// minutes.
const apart = time.Minute

// inTime reports whether a reply says nothing of a clock that is far from ours. A date
// that cannot be read is far: the SDK warns of it.
func inTime(resp *http.Response) bool {
	date := resp.Header.Get("Date")
	if date == "" {
		return true
	}
	said, err := smithyhttp.ParseTime(date)
	return err == nil && time.Since(said).Abs() <= apart
}
