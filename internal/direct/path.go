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

// Operation is one of those that are sent without the SDK's middleware.
type Operation int

// The operations.
const (
	GetItem Operation = iota
	UpdateItem
	operations int = iota
)

var described = [operations]struct {
	name   string
	schema *smithy.OperationSchema
}{
	GetItem:    {"GetItem", smithy.NewOperationSchema(schemas.GetItem, schemas.GetItemInput, schemas.GetItemOutput)},
	UpdateItem: {"UpdateItem", smithy.NewOperationSchema(schemas.UpdateItem, schemas.UpdateItemInput, schemas.UpdateItemOutput)},
}

// Path sends requests of one client for one table. It is safe for concurrent use.
type Path struct {
	Options dynamodb.Options // of the client; not to be changed

	examples [operations]atomic.Pointer[example]
	derived  atomic.Pointer[derived]
	unequal  atomic.Int32 // examples whose signature was not the client's signer's
}

// New returns the path of a client; nil: its options leave a doubt whether everything
// that it was asked for happens without the middleware too.
func New(client *dynamodb.Client) *Path {
	o := client.Options()
	if doubtful(&o) != "" {
		return nil
	}
	return &Path{Options: o}
}

// Open reports whether there is an example of an operation's requests.
func (p *Path) Open(op Operation) bool { return p.examples[op].Load() != nil }

// Decode reads a reply as the SDK does: what it says, or the error that it is.
func (p *Path) Decode(ctx context.Context, op Operation, resp *http.Response, out smithy.Deserializable) error {
	return p.Options.Protocol.DeserializeResponse(ctx, described[op].schema, dynamodb.TypeRegistry, &smithyhttp.Response{Response: resp}, out)
}

// Heed looks at the service's clock in a reply: while it is far from ours the SDK makes
// the requests.
func (p *Path) Heed(resp *http.Response) {
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
