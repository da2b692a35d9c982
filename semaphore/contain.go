package semaphore

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/dynahold/dynahold/repo"
)

// What users hand in may panic: their decoders, their handlers, and the errors
// of their handlers. One job must not end the process, which has others.

// contain runs fn in a goroutine of its own and turns a panic, and the end of
// that goroutine, into an error.
func contain(what string, fn func() error) <-chan error {
	end := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%s ended its goroutine", what)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s panicked: %v\n%s", what, p, debug.Stack())
			}
			end <- err
		}()
		if err = fn(); err != nil {
			_ = err.Error() // which may panic, too: here it is caught
		}
	}()
	return end
}

// decode reads the value of a job into a new J. A value that cannot be read is
// ErrSchema.
func decode[J any](value string) (*J, error) {
	var v J
	if err := <-contain("its decoding", func() error { return json.Unmarshal([]byte(value), &v) }); err != nil {
		return new(J), fmt.Errorf("%w: its value is not a %T: %w", repo.ErrSchema, *new(J), err)
	}
	return &v, nil
}

// errorText is the text of a user's error.
func errorText(err error) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("an error of type %T, whose text cannot be had: %v", err, p)
		}
	}()
	return err.Error()
}
