package delegate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Limits of what travels, in bytes of JSON.
const (
	// MostArgs bounds the arguments of one call, and MostResult its result.
	MostArgs   = 8 << 10
	MostResult = 2 << 10

	mostText = 512 // of an error
)

// ErrRepeated is the error of a call under an operation id that the item remembers: it was
// applied before, and its result is not kept. It is a success of whoever sent it first, and
// [repo.Written] to [repo.VerdictOf].
var ErrRepeated = fmt.Errorf("the operation was applied before: %w", telemetry.NoResult)

// RefusedError says that a command has refused, by an error of its own, or cannot be carried
// out: nothing of it was applied. errors.Is finds those of Config.Errors, and of package repo
// ErrTooLarge, ErrFixed, ErrSchema, ErrStale, ErrMismatch and ErrNotUnique; of all others the
// text is left.
type RefusedError struct {
	Command string
	Text    string
	is      error
}

func (e *RefusedError) Error() string { return e.Text }

// Unwrap is what is known by name.
func (e *RefusedError) Unwrap() error { return e.is }

// What an answer begins with.
const (
	done     = "+" // the result follows
	refused  = "-" // names, with ones between them, a zero, and a text follow
	unknown  = "?" // this program has no such command, or the item no room for what it answers
	taken    = "~" // the sender has taken the mail back
	repeated = "="
)

// known are the errors that travel by name.
var known = map[string]error{
	"repo.TooLarge": repo.ErrTooLarge, "repo.Fixed": repo.ErrFixed, "repo.Schema": repo.ErrSchema,
	"repo.Stale": repo.ErrStale, "repo.Mismatch": repo.ErrMismatch, "repo.Nested": repo.ErrNested, "repo.Config": repo.ErrConfig, "repo.NotUnique": repo.ErrNotUnique,
}

// refuse is the answer of a command that has failed. What it asks of an error may panic.
func (e *engine) refuse(err error) string {
	var names []string
	for name, sentinel := range e.errors {
		if errors.Is(err, sentinel) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := err.Error()
	for len(text) > mostText || !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "�")
		if len(text) > mostText {
			text = text[:mostText]
		}
	}
	return refused + strings.Join(names, "\x01") + "\x00" + text
}

// read is what an answer says to its caller.
func (e *engine) read(command, answer string) (result string, err error) {
	if answer == "" {
		return "", fmt.Errorf("%w: an empty answer", repo.ErrSchema)
	}
	rest := answer[1:]
	switch answer[:1] {
	case done:
		return rest, nil
	case repeated:
		return "", ErrRepeated
	case refused:
		names, text, _ := strings.Cut(rest, "\x00")
		var is []error
		for name := range strings.SplitSeq(names, "\x01") {
			is = append(is, e.errors[name])
		}
		return "", &RefusedError{Command: command, Text: text, is: nesting.Returned(errors.Join(is...))} // of another call, if that says anything
	}
	return "", fmt.Errorf("%w: the answer %q", repo.ErrSchema, answer[:1])
}
