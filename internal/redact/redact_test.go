package redact_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/redact"
)

func TestAnErrorIsToldByItsTypeAndFoundByIs(t *testing.T) {
	for name, err := range map[string]error{
		"error":      redact.Error(fmt.Errorf("value hush: %w", io.EOF)),
		"panic":      redact.Panic(fmt.Errorf("value hush: %w", io.EOF)),
		"text panic": redact.Panic("hush"),
	} {
		if is := errors.Is(err, io.EOF); is != (name != "text panic") {
			t.Errorf("%s: errors.Is is %v", name, is)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, "hush") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

func TestMessagesOfTheServiceLoseTheValuesThatTheyRepeat(t *testing.T) {
	for said, want := range map[string]string{
		"The parameter cannot be converted to a numeric value: hush\n1":                                                            "The parameter cannot be converted to a numeric value: …",
		"One or more parameter values were invalid: Input collection [hush, a]b] contains duplicates.":                             "One or more parameter values were invalid: Input collection … contains duplicates.",
		"1 validation error detected: Value 'hu'sh' at 'key' failed to satisfy constraint":                                         "1 validation error detected: Value '…' at 'key' failed to satisfy constraint",
		"Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: +, operand type: STRING": "Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: +, operand type: STRING",
	} {
		err := fmt.Errorf("request: %w", &smithy.GenericAPIError{Code: "ValidationException", Message: said})
		if redact.Answer(err); !strings.HasSuffix(err.Error(), want) && !strings.HasSuffix(errors.Unwrap(err).Error(), want) {
			t.Errorf("%v, want %q", errors.Unwrap(err), want)
		}
		cancelled := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{}, {Code: aws.String("ValidationError"), Message: &said}}}
		if redact.Answer(cancelled); *cancelled.CancellationReasons[1].Message != want {
			t.Errorf("%q, want %q", *cancelled.CancellationReasons[1].Message, want)
		}
	}
}
