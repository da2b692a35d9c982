package crew

import (
	"context"
	"encoding/json"
	"io"
	"os"
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

// Say tells the parent an event, as a JSON line.
func Say(event any) {
	_ = json.NewEncoder(os.Stdout).Encode(event) // a parent that is gone hears nothing
}
