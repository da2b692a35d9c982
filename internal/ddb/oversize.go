package ddb

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// Oversize reports whether the service refused a write because the item would
// be larger than it takes. Its API has no error of its own for that.
func Oversize(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "Item size")
}
