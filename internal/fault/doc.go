// Package fault stands between the AWS SDK and an engine: it counts requests
// and breaks some of them on a seeded schedule or as a test says, by changing
// one message of the real client. It is for tests only.
//
// Its types are HTTP clients of the SDK and can be put in a row:
//
//	injector := fault.New(o.HTTPClient, fault.Config{Seed: seed, Rate: 0.25})
//	counter := fault.NewCounter(injector) // counts what the SDK sends, not what arrives
//	o.HTTPClient = counter
//
// What a [Kind] calls delivered has been acted on by the engine before the
// caller hears anything, even if the caller's context ends meanwhile: otherwise
// a test could not tell a lost answer from a lost request.
package fault

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Doer is the SDK's HTTP client.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

var (
	_ aws.HTTPClient = (*Counter)(nil)
	_ aws.HTTPClient = (*Injector)(nil)
	_ aws.HTTPClient = (*Copier)(nil)
)
