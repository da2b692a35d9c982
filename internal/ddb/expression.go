package ddb

import (
	"fmt"
	"regexp"
	"strings"
)

// DynamoDB's limits for one expression, in bytes and in operators and functions. Engines may
// take more of these.
const (
	maxExpression = 4096
	maxOperators  = 300
)

// operator is one of them. Names and values are placeholders.
var operator = regexp.MustCompile(`<>|<=|>=|[=<>+]| - |\b(?:AND|OR|NOT|IN|BETWEEN)\b|[a-z] ?\(`)

// CheckExpressions refuses an update, or what is to hold, that DynamoDB would refuse for its size.
func CheckExpressions(update, holds string) error {
	for i, t := range [...]string{holds, update} {
		if len(t) > maxExpression {
			return &SizeError{fmt.Sprintf("the write changes so many attributes that its expression has %d bytes, DynamoDB takes %d: group attributes in a map, or change fewer at once", len(t), maxExpression)}
		}
		if len(t) <= 4*maxOperators { // as each has four bytes at least, with what it is for
			continue
		}
		n := len(operator.FindAllStringIndex(t, -1)) - strings.Count(t, "BETWEEN") // which has an AND
		if i == 1 {
			n -= strings.Count(t, "=") // what is set is none
		}
		if n > maxOperators {
			return &SizeError{fmt.Sprintf("the expression has %d operators and functions, DynamoDB takes %d", n, maxOperators)}
		}
	}
	return nil
}
