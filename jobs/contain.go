package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/dynahold/dynahold/internal/redact"
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
			ask(err)
		}
	}()
	return end
}

// ask calls what others will call of a user's error to see what it is: its causes, and its
// methods Is and As, which may panic, too.
func ask(err error) {
	_ = errors.Is(err, errLeftBehind)
	_ = errors.As(err, new(*repo.LockedError))
}

// decode reads the value of a job into a new J. A value that cannot be read is
// ErrSchema, and no part of it is in the error.
func decode[J any](value string) (*J, error) {
	var v J
	if err := decodeInto(value, &v); err != nil {
		return new(J), fmt.Errorf("%w: its value is not a %T: %w", repo.ErrSchema, *new(J), err)
	}
	return &v, nil
}

func decodeInto(value string, v any) error {
	var err error
	ended := <-contain("its decoding", func() error {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w\n%s", redact.Panic(p), debug.Stack())
			}
		}()
		if err = json.Unmarshal([]byte(value), v); err != nil {
			ask(err)
			err = undecoded(err)
		}
		return nil
	})
	if ended != nil { // what was decoded has ended its goroutine
		return ended
	}
	return err
}

// undecoded is what can be told of an error of package json: where, and the type that
// something was for. Its texts repeat numbers, and those of types that decode themselves
// whatever they like.
func undecoded(err error) error {
	switch err := err.(type) { //nolint:errorlint // what wraps one has a text of its own
	case *json.SyntaxError:
		return fmt.Errorf("it is not JSON, at byte %d", err.Offset)
	case *json.UnmarshalTypeError:
		if err.Field == "" {
			return fmt.Errorf("what is at byte %d does not fit a %v", err.Offset, err.Type)
		}
		return fmt.Errorf("field %s does not fit a %v", err.Field, err.Type)
	}
	return redact.Error(err)
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
