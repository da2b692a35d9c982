package localdb

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TB is what [Client] needs of a *testing.T, *testing.B or *testing.F. It is
// spelled out so that programs which embed an engine do not link package
// testing, which registers command-line flags.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// firstFetch bounds Client where the engine must come over a slow network.
const firstFetch = 2 * time.Minute

// Client returns a client of an engine for this test alone and closes the
// engine when the test ends. It fails the test where there is none, and where
// it has ended by itself.
//
// With an endpoint given by the environment the engine is shared, see
// [Start].
func Client(tb TB) *dynamodb.Client {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), firstFetch)
	defer cancel()
	e, err := Start(ctx, Config{})
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() { e.closeFor(tb) })
	return e.Client()
}

func (e *Engine) closeFor(tb TB) {
	tb.Helper()
	if err := e.Close(); err != nil {
		tb.Fatalf("%v", err)
	}
}
