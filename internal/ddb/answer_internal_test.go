package ddb

import (
	"errors"
	"strings"
	"testing"
)

// Whose answer it is, case by case.
func TestWhoseAnswer(t *testing.T) {
	const own, json = ofService + "#", "application/x-amz-json-1.0"
	both := habits{checksums: true, ids: true}
	fine := answer{op: "UpdateItem", status: 200, content: json, checksum: true, id: true, seen: true}
	failed := fine
	failed.status, failed.code, failed.kind = 400, "ConditionalCheckFailedException", own+"ConditionalCheckFailedException"
	coral := failed
	coral.code, coral.kind = "AccessDeniedException", "com.amazon.coral.service#AccessDeniedException"
	cancelled := failed
	cancelled.op, cancelled.code, cancelled.kind = "TransactWriteItems", "TransactionCanceledException", own+"TransactionCanceledException"
	cancelled.parts, cancelled.reasons = 2, []string{"None", "ConditionalCheckFailed"}
	bare := func(a *answer) { a.checksum = false }
	for name, c := range map[string]struct {
		answer answer
		but    func(a *answer)
		before habits
		why    string // "": it is the service's
	}{
		"granted":                               {fine, nil, both, ""},
		"a condition failed":                    {failed, nil, both, ""},
		"refused by the frame":                  {coral, nil, both, ""},
		"cancelled":                             {cancelled, nil, both, ""},
		"an engine without checksums":           {fine, bare, habits{}, ""},
		"an engine without checksums, refusing": {coral, bare, habits{ids: true}, ""},
		"an engine without a namespace":         {failed, func(a *answer) { a.kind, a.checksum = a.code, false }, habits{}, ""},
		"an error with an address":              {coral, func(a *answer) { a.kind += ":http://internal/coral/" }, both, ""},
		"out of sight":                          {failed, func(a *answer) { a.seen, a.kind = false, "" }, both, ""},
		"what an engine returns beside":         {fine, func(a *answer) { a.checksum, a.members = false, []string{"Attributes"} }, habits{}, ""},
		"no checksum any more":                  {coral, bare, both, "no checksum"},
		"no checksum any more, granted":         {fine, bare, both, "no checksum"},
		"no id any more":                        {fine, func(a *answer) { a.checksum, a.id = false, false }, habits{ids: true}, "no request's id"},
		"redirected":                            {fine, func(a *answer) { a.redirected = true }, both, "redirection"},
		"cut":                                   {fine, func(a *answer) { a.broken = errors.New("cut") }, both, "cut"},
		"a page":                                {fine, func(a *answer) { a.content, a.checksum = "text/html", false }, habits{}, "text/html"},
		"of a gateway":                          {fine, func(a *answer) { a.content, a.checksum, a.id = "application/json", false, false }, habits{}, "application/json"},
		"204":                                   {fine, func(a *answer) { a.status = 204 }, both, "204"},
		"granted, with a message":               {fine, func(a *answer) { a.checksum, a.members = false, []string{"message"} }, habits{}, `"message"`},
		"granted, to another operation":         {fine, func(a *answer) { a.members = []string{"Item"} }, both, `"Item"`},
		"3xx":                                   {coral, func(a *answer) { a.status = 307 }, both, "307"},
		"407":                                   {coral, func(a *answer) { a.status = 407 }, both, "407"},
		"429":                                   {coral, func(a *answer) { a.status = 429 }, both, "429"},
		"no type":                               {coral, func(a *answer) { a.kind = "" }, both, "no type"},
		"a type in the header":                  {coral, func(a *answer) { a.kind = own + "ValidationException" }, both, "header"},
		"out of sight, with a header":           {failed, func(a *answer) { a.seen, a.titled, a.kind = false, true, "" }, both, "header"},
		"another service's":                     {coral, func(a *answer) { a.kind = "com.amazonaws.sqs#AccessDeniedException" }, both, "another service's"},
		"a condition, by the frame":             {failed, func(a *answer) { a.kind = "com.amazon.coral.service#" + a.code }, both, "another service's"},
		"an error that there is not":            {failed, func(a *answer) { a.code, a.kind = "QuotaException", own+"QuotaException" }, both, `no error "QuotaException"`},
		"a condition that a read had":           {failed, func(a *answer) { a.op = "GetItem" }, both, "GetItem has no error"},
		"a cancellation of one write":           {cancelled, func(a *answer) { a.op = "UpdateItem" }, both, "UpdateItem has no error"},
		"a cancellation with too few reasons":   {cancelled, func(a *answer) { a.reasons = a.reasons[1:] }, both, "1 reasons for 2"},
		"a cancellation with a reason that is none":    {cancelled, func(a *answer) { a.reasons = []string{"None", "Bored"} }, both, "Bored"},
		"a condition that reads together had":          {cancelled, func(a *answer) { a.op = "TransactGetItems" }, both, "ConditionalCheckFailed"},
		"a cancellation for which nothing is a reason": {cancelled, func(a *answer) { a.reasons = []string{"None", ""} }, both, "no reason"},
	} {
		if c.but != nil {
			c.but(&c.answer)
		}
		why := c.answer.foreign(c.before)
		if (why == nil) != (c.why == "") || why != nil && !strings.Contains(why.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, why, c.why)
		}
	}
}
