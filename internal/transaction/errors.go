package transaction

import (
	"fmt"
	"strings"

	"github.com/dynahold/dynahold/repo"
)

// Failure is an item because of which nothing was written, or of which nobody
// knows whether it was.
type Failure struct {
	Table string
	Key   repo.Key
	Err   error
}

// Error are the items because of which a transaction failed.
type Error struct {
	Failed []Failure
	Why    error // what else there is to say, such as the end of a context; nil: nothing
}

func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("transaction: ")
	for i, f := range e.Failed {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(&text, "table %q: %v", f.Table, f.Err)
	}
	if e.Why != nil {
		fmt.Fprintf(&text, ": %v", e.Why)
	}
	return text.String()
}

// Unwrap lets errors.Is and errors.As find the error of each item.
func (e *Error) Unwrap() (all []error) {
	for _, f := range e.Failed {
		all = append(all, f.Err)
	}
	if e.Why != nil {
		all = append(all, e.Why)
	}
	return all
}

// fail is the error of some items; nil if there are none.
func fail(failed ...Failure) error {
	if len(failed) == 0 {
		return nil
	}
	return &Error{Failed: failed}
}

// because says why, beside the items that a transaction failed for.
func because(err, why error) error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // only as it was made
		return &Error{e.Failed, why}
	}
	return err
}

// The limits of DynamoDB for one transaction.
const (
	maxItems = 100
	maxBytes = 4 << 20
)

func tooLarge(size int) error {
	return fmt.Errorf("%w: the items of the transaction have about %d bytes; DynamoDB takes %d: nothing was written", repo.ErrTooLarge, size, maxBytes)
}

func tooMany() error {
	return fmt.Errorf("%w: a transaction has at most %d items: nothing was written", repo.ErrTooLarge, maxItems)
}
