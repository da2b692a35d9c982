package ddb

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// Oversize reports whether the service refused a request because the item, or those of the
// transaction together, would be larger than it takes. Its API has no error of its own for that.
func Oversize(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ValidationException" {
		return false
	}
	text := api.ErrorMessage()
	return strings.Contains(text, "Item size") || strings.Contains(text, "aggregate size of the items")
}
