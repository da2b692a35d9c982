package crew

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/localdb"
)

const memberEnv = "DYNAHOLD_EXAMPLE_MEMBER"

// IsMember tells whether this process was started by Start: a test binary must
// then be the program, and run no tests.
func IsMember() bool { return os.Getenv(memberEnv) != "" }

// WithParent returns a context that also ends when the process that started
// this member is gone.
func WithParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the parent holds the other end
		cancel()
	}()
	return ctx, cancel
}

// Join does the work of a member, with a client of the parent's engine, until it is told to
// end or its parent is gone.
func Join(ctx context.Context, work func(context.Context, *dynamodb.Client) error) error {
	ctx, cancel := WithParent(ctx)
	defer cancel()
	engine, err := localdb.Start(ctx, localdb.Config{}) // the parent's, from the environment
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	return work(ctx, engine.Client())
}

// Say tells the parent an event, as a JSON line.
func Say(event any) {
	_ = json.NewEncoder(os.Stdout).Encode(event) // a parent that is gone hears nothing
}
