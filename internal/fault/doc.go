// Package fault, for tests only, stands between the AWS SDK and an engine: it
// counts requests and breaks some of them on a seeded schedule or as a test
// says, by changing one message of the real client.
package fault

import "net/http"

// Doer is the SDK's HTTP client.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}
