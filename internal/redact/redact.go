// Package redact keeps values of items out of errors: they are logged by many, and items
// have what is nobody else's business. What a type of a user's says in an error of its own
// cannot be known, so the type of the error is all that is told of it.
package redact

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Error stands for an error whose text may have values. errors.Is finds what it stands
// for; nothing leads to its text.
func Error(err error) error {
	if e, ok := err.(*hidden); ok { //nolint:errorlint // what wraps one may have a text of its own
		return e
	}
	return &hidden{fmt.Sprintf("an error of type %T, whose text is withheld, for it may have values", err), is(err)}
}

// Encoding stands for an error of attributevalue's encoder: its own texts name types, as does
// what is Plain, those of types that encode themselves may have values.
func Encoding(err error) error {
	switch err.(type) { //nolint:errorlint // what wraps one has a text of its own
	case *attributevalue.InvalidMarshalError, Plain:
		return err
	}
	return Error(err)
}

// Plain is an error whose text has no values.
type Plain string

func (p Plain) Error() string { return string(p) }

// Panic stands for what somebody panicked with.
func Panic(value any) error {
	err, _ := value.(error)
	return &hidden{fmt.Sprintf("a panic with a value of type %T, whose text is withheld, for it may have values", value), is(err)}
}

func is(err error) func(error) bool {
	return func(target error) bool { return errors.Is(err, target) }
}

// hidden has a function, not an error, so that no formatting follows it.
type hidden struct {
	text string
	is   func(error) bool
}

func (e *hidden) Error() string        { return e.text }
func (e *hidden) Is(target error) bool { return e.is(target) }

// Answer takes values out of what the service says of a request that it refuses as
// invalid: some of its messages repeat them.
func Answer(err error) {
	var generic *smithy.GenericAPIError
	if errors.As(err, &generic) && generic.Code == "ValidationException" {
		generic.Message = Message(generic.Message)
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return
	}
	for i := range cancelled.CancellationReasons {
		if r := &cancelled.CancellationReasons[i]; r.Message != nil {
			text := Message(*r.Message)
			r.Message = &text
		}
	}
}

// Message is such a message without what may be a value.
func Message(s string) string { return repeated.ReplaceAllString(s, "$1$2$3…$4") }

// repeated is where the service repeats values. The text of an expression has none:
// placeholders stand for them.
var repeated = regexp.MustCompile(`(?s)(to a numeric value: ).*|(Input collection )\[.*\]|(Value ').*(' at ')`)

// Exported prints a struct by its exported fields that are set, for any verb: what is
// secret and what cannot be read are told as set. What a value has besides is nobody's
// business but its package's.
func Exported(w io.Writer, name string, value any, secret ...string) {
	v := reflect.ValueOf(value)
	var all []string
	for i := range v.NumField() {
		f, at := v.Type().Field(i), v.Field(i)
		if !f.IsExported() || at.IsZero() {
			continue
		}
		text := "set"
		switch at.Kind() {
		case reflect.Func, reflect.Interface, reflect.Pointer, reflect.Chan:
		case reflect.String:
			text = strconv.Quote(at.String())
		default:
			if !slices.Contains(secret, f.Name) {
				text = fmt.Sprintf("%+v", at.Interface())
			}
		}
		all = append(all, f.Name+":"+text)
	}
	_, _ = fmt.Fprintf(w, "%s{%s}", name, strings.Join(all, " "))
}
